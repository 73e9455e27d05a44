"""A partition is written in the oldest state version that has all words of its specs.

Workers of two releases share a group then: the older release continues with partitions that use no newer
word, and stops the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core import state_version
from core.model import snapshot
from core.state_version import ALIKE_SINCE, STATE_VERSION
from streamapp.worker.journal.entry import Entry, decode, encode
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.task.models.files.exported import write_exported
from streamapp.worker.task.models.files.importing import control_values
from streamapp.worker.task.task import Task
from streamapp.worker.task.unit import Unit, unseal
from tests.topology.logged import Logged
from tests.topology.partition import ALWAYS, PARTITION, Partition, Record, config

SCHEMA = {"attributes": [{"name": "x"}], "classes": ["a", "b"]}
SEEDS = iter(range(7000, 8000))


@pytest.fixture(autouse=True)
def a_learner_of_the_newest_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``no-change`` be a word of the newest version, as a learner is that comes with a release."""
    words = {**state_version.NEW_WORDS, STATE_VERSION: frozenset({"learner.no_change"})}
    monkeypatch.setattr(state_version, "NEW_WORDS", words)


def new_spec() -> dict[str, Any]:
    """Return a spec with the new word that no other test has used: the version of a spec is computed once."""
    return {"learner": "no-change", "seed": next(SEEDS)}


class Shared(Logged):
    """A partition whose worker commits after each step of a test."""

    def __init__(self) -> None:
        super().__init__(config(ALWAYS))
        self.journal: list[Entry] = []

    def commit(self) -> list[int]:
        """Return the state versions of the next entries of the journal."""
        entries = self.ledger.cut(self.task.state_version)
        self.journal += entries
        return [entry.state_version for entry in entries]

    def rows(self, n: int = 10, key: str = "m") -> None:
        self.instances(*({"features": {"x": i}, "label": "ab"[i % 2]} for i in range(n)), key=key)

    def replayed(self) -> Task:
        """Return the task that the journal leads to."""
        replay = Replay(PARTITION, self.reader(7))
        for entry in self.journal:
            written = decode(encode(entry), partition=PARTITION)
            assert isinstance(written, Entry)
            replay.apply(written)
        assert replay.task is not None
        return replay.task


def model_versions(units: list[Unit]) -> dict[str, int]:
    """Return the state version in the unit of each model that is no challenger."""
    return {
        unit.name.key: snapshot.describe(bytes(unseal(unit)[1])).state
        for unit in units
        if unit.name.kind == "model"
    }


def test_a_partition_without_new_words_can_go_back_to_the_older_release() -> None:
    live = Shared()
    live.control("create", key="k", spec={"learner": "h-tree"}, schema=SCHEMA)
    live.control("create", key="awaited", spec={"learner": "naive-bayes"})
    live.rows()
    assert live.commit() == [ALIKE_SINCE]
    assert model_versions(list(live.task.cut().units())) == {"k": ALIKE_SINCE, "m": ALIKE_SINCE}


def created(live: Logged) -> None:
    live.control("create", key="k", spec=new_spec(), schema=SCHEMA)


def awaited(live: Logged) -> None:
    live.control("create", key="k", spec=new_spec())


def challenger(live: Logged) -> None:
    live.control("challenge", key="m", spec=new_spec())


def imported(live: Logged) -> None:
    source = Partition(config(ALWAYS))
    source.control("create", key="k", spec=new_spec(), schema=SCHEMA)
    store = source.task.models
    origin: dict[str, Any] = {"prefix": "t.", "partition": 3, "positions": {}}
    file = write_exported(store.record(store.keys.slot("k")), origin)
    live.feed(*(Record("controls", b"k", value) for value in control_values(file, "one", size=300)))


@pytest.mark.parametrize("use", [created, awaited, challenger, imported])
def test_a_new_word_makes_its_partition_one_of_the_newest_version(use: Callable[[Logged], None]) -> None:
    live = Shared()
    live.rows()
    assert live.commit() == [ALIKE_SINCE]
    use(live)
    assert live.dead_letters == []
    assert set(live.commit()) == {STATE_VERSION}
    live.rows(5)
    assert live.commit() == [STATE_VERSION]
    assert live.replayed().digest() == live.task.digest(), "two versions in one journal"
    cut = live.task.cut()
    units = list(cut.units())
    versions = model_versions(units)
    assert cut.state_version == STATE_VERSION
    assert versions.pop("k", STATE_VERSION) == STATE_VERSION
    assert versions == {"m": ALIKE_SINCE}
    restored = Task.from_units(PARTITION, live.task.config, None, units)
    assert restored.state_version == STATE_VERSION
    assert restored.digest() == live.task.digest()


def test_a_default_spec_with_a_new_word_makes_all_partitions_of_the_newest_version() -> None:
    assert Partition(config(new_spec())).task.state_version == STATE_VERSION


def test_a_partition_whose_new_model_is_deleted_goes_back_with_the_next_task() -> None:
    live = Shared()
    live.rows()
    created(live)
    live.control("delete", key="k")
    assert set(live.commit()) == {STATE_VERSION}
    units = list(live.task.cut().units())
    assert Task.from_units(PARTITION, live.task.config, None, units).state_version == ALIKE_SINCE
