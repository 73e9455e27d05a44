"""Units that a release wrote can be read for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.model import snapshot
from core.spec import Spec
from core.state_version import ALIKE_SINCE, STATE_VERSION
from streamapp.worker.task.task import Task
from streamapp.worker.task.unit import FORMAT_VERSION, Unit, unseal
from tests.golden import units as golden
from tests.golden.versions import WRITTEN, ascending, versions
from tests.topology.partition import PARTITION


@pytest.mark.parametrize("version", [ALIKE_SINCE, STATE_VERSION])
def test_there_is_a_file_of_the_format_that_is_written(version: int) -> None:
    assert f"units-{FORMAT_VERSION}-{version}.bin" in {path.name for path in golden.files()}


def test_the_newest_file_is_that_of_the_highest_numbers_not_of_the_last_letters() -> None:
    names = ["units-1-4.bin", "units-1-9.bin", "units-1-10.bin", "units-2-1.bin", "units-10-1.bin"]
    assert [path.name for path in ascending(map(Path, sorted(names)))] == names
    assert sorted(names) != names


@pytest.mark.parametrize("path", golden.files(), ids=lambda path: path.stem)
def test_a_task_of_an_old_file_is_what_it_was_and_goes_on(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text())
    units = golden.read(path)
    assert [str(unit.name) for unit in units] == expected["names"]
    _, state_version = versions(path)
    given = golden.config_of(state_version)
    task = Task.from_units(PARTITION, given, None, units)
    expected["task"]["awaited"] = {
        key: Spec.parse(spec, state_version).to_dict() for key, spec in expected["task"]["awaited"].items()
    }
    assert json.loads(json.dumps(golden.described(task))) == expected["task"]
    then = golden.goes_on(task, expected["offsets"], given)
    assert json.loads(json.dumps(then)) == expected["then"]


@pytest.mark.parametrize("version", WRITTEN)
def test_the_file_of_the_format_that_is_written_has_something_of_everything(version: int) -> None:
    units = golden.read(golden.file_of_now(version))
    states = {words_of(unit)[0] for unit in units if unit.name.kind == "model"}
    assert states == {version}, "models of another state version"
    kinds = {unit.name.kind for unit in units}
    assert kinds == {"task", "model", "pending", "marks", "awaited", "closings", "early", "import"}


@pytest.mark.parametrize("version", WRITTEN)
def test_the_same_story_leads_to_the_same_units_today(version: int) -> None:
    """Whoever changes what is written raises a version and leaves the old file in its place."""
    old = golden.file_of_now(version)
    today = list(golden.played(golden.config_of(version)).task.cut().units())
    assert [unit.name for unit in today] == [unit.name for unit in golden.read(old)]
    for now, then in zip(today, golden.read(old), strict=True):
        if now.name.kind == "model":
            assert words_of(now) == words_of(then), (
                "models have other words: raise ALIKE_SINCE or STATE_VERSION"
            )
        elif now.name.kind != "task":  # it holds checksums of models, whose floats depend on the platform
            assert now.data == then.data, now.name


def words_of(unit: Unit) -> tuple[int, int, str, str]:
    """Return state version, number of words, spec and schema of a model."""
    header = snapshot.describe(bytes(unseal(unit)[1]))
    return header.state, header.words, header.spec.to_json(), header.schema.to_json()


@pytest.mark.parametrize("path", golden.files(), ids=lambda path: path.stem)
def test_models_of_version_4_go_on_with_the_evidence_they_began_with(path: Path) -> None:
    given = golden.config_of(versions(path)[1])
    task = Task.from_units(PARTITION, given, None, golden.read(path))
    evidence = "observed" if versions(path)[1] == 4 else "inherited"
    assert {task.models.cache.plan(slot).spec.learner.evidence for _, slot in task.models.keys.names()} == {
        evidence
    }
    assert {spec.learner.evidence for spec in task.awaited.values()} == {evidence}
