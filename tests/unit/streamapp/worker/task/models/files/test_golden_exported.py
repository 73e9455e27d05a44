"""Exported models that a release wrote can be read, answer, and are let in."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import core
from core.model import file as model_file
from core.model import snapshot
from core.state_version import ALIKE_SINCE, STATE_VERSION
from streamapp.worker.task.models.files.exported import read_exported
from streamapp.worker.task.models.files.importing import control_values
from tests.golden import exported as golden
from tests.golden.versions import WRITTEN
from tests.topology.partition import NEVER, Partition, Record, config


@pytest.mark.parametrize("version", [ALIKE_SINCE, STATE_VERSION])
def test_there_is_a_file_of_the_format_that_is_written(version: int) -> None:
    name = f"exported-{model_file.FORMAT_VERSION}-{version}.grove"
    assert name in {path.name for path in golden.files()}
    data = golden.file_of_now(version).read_bytes()
    assert snapshot.describe(model_file.unwrap(data).snapshot).state == version


@pytest.mark.parametrize("path", golden.files(), ids=lambda path: path.stem)
def test_an_old_file_is_what_it_was(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text())
    assert json.loads(json.dumps(golden.described(path.read_bytes()))) == expected
    model = core.Model.load(path)
    assert [golden.answer(model, question) for question in golden.QUESTIONS] == expected["answers"]
    assert read_exported(path.read_bytes()).key == "shop/ü"


@pytest.mark.parametrize("path", golden.files(), ids=lambda path: path.stem)
def test_an_old_file_can_be_imported(path: Path) -> None:
    partition = Partition(config(NEVER))
    values = control_values(path.read_bytes(), "x", size=700)
    partition.feed(*(Record("controls", b"m", value) for value in values))
    assert partition.dead_letters == []
    expected = json.loads(path.with_suffix(".json").read_text())
    assert partition.model().summary().labels == expected["summary"]["labels"]


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[7] / "docs" / "portable-models.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
    shutil.copy(golden.files()[-1], tmp_path / "user-17.grove")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(example, names)
    assert names["answer"].label in names["model"].schema.classes


@pytest.mark.parametrize("version", WRITTEN)
def test_the_same_story_leads_to_the_same_head_today(version: int) -> None:
    """Whoever changes what is written raises the version and leaves the old file in its place."""
    today, old = golden.written(version), golden.file_of_now(version).read_bytes()
    assert model_file.unwrap(today).head == model_file.unwrap(old).head
