"""Units with open challenges and episodes, which a release wrote, can be read for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamapp.worker.task.unit import unseal
from tests.golden import open_units as golden
from tests.golden import units
from tests.unit.streamapp.worker.task.test_golden_units import words_of


@pytest.mark.parametrize("path", golden.files(), ids=lambda path: path.stem)
def test_open_challenges_and_episodes_of_an_old_file_go_on(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    stored = units.read(path)
    assert [str(unit.name) for unit in stored] == expected["names"]
    task = golden.again(stored)
    assert task.open_episodes == len(golden.BUYERS)
    assert json.loads(json.dumps(golden.goes_on(task, expected["offsets"]))) == expected["then"]


def test_the_same_story_leads_to_the_same_units_today() -> None:
    """A change of what is written raises a version and leaves the old file in its place."""
    today, old = list(golden.played().task.cut().units()), units.read(golden.file_of_now())
    assert [unit.name for unit in today] == [unit.name for unit in old]
    for now, then in zip(today, old, strict=True):
        if now.name.kind in ("model", "challenger"):
            assert words_of(now) == words_of(then)
        elif now.name.kind != "task":
            assert unseal(now)[0] == unseal(then)[0], now.name


def test_golden_files_have_every_kind_of_unit() -> None:
    """The kinds are those of the page about snapshots."""
    page = Path(__file__).parents[5] / "docs" / "snapshots.md"
    table = page.read_text(encoding="utf-8").partition("| kind | key |")[2].partition("\n\n")[0]
    kinds = {line.split("`")[1] for line in table.splitlines()[2:]}
    files = [*golden.files(), *units.files()]
    assert {unit.name.kind for path in files for unit in units.read(path)} == kinds
