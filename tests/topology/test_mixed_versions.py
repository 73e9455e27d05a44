"""A partition is written in the oldest state version that has all words of its specs.

Workers of two releases share a group then: the older release continues with partitions that use no newer
word, and stops the others.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core import state_version
from core.model import snapshot
from core.model.frame import DIGEST
from core.state_version import ALIKE_SINCE, STATE_VERSION
from streamapp.errors import OtherReleaseError
from streamapp.worker.journal.entry import Entry, decode, encode
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.task.models.files.exported import write_exported
from streamapp.worker.task.models.files.importing import control_values
from streamapp.worker.task.task import Task
from streamapp.worker.task.unit import Unit, UnitName, seal, unseal
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


def of_lacking_learner(data: bytes) -> bytes:
    """Return the snapshot of a model of h-tree as if its learner were one that is not here."""
    changed = data.replace(b'"name":"h-tree"', b'"name":"x-tree"')
    assert changed != data
    return changed[:-4] + zlib.crc32(changed[:-4]).to_bytes(4, "little")


def test_a_model_whose_learner_is_not_here_is_not_taken_for_damaged() -> None:
    """Else the partition would go on from an older snapshot, as if the model had never been."""
    live = Shared()
    live.rows()
    units = list(live.task.cut().units())
    for at, unit in enumerate(units):
        if unit.name.kind == "model":
            facts, body = unseal(unit)
            units[at] = seal(unit.name, facts, [of_lacking_learner(bytes(body))])
    with pytest.raises(OtherReleaseError, match="unit model 'm'#1: .* 'x-tree'"):
        Task.from_units(PARTITION, live.task.config, None, units)


def test_a_unit_of_a_later_format_is_not_taken_for_damaged() -> None:
    unit = seal(UnitName("task"), {})
    later = unit.data[:8] + (99).to_bytes(4, "little") + unit.data[12:-DIGEST]
    later += hashlib.blake2b(later, digest_size=DIGEST).digest()
    with pytest.raises(OtherReleaseError, match="has format 99; this build reads format 1; run the release"):
        unseal(Unit(unit.name, later))


def test_a_command_that_was_carried_out_and_is_refused_here_stops_the_replay() -> None:
    """Its learner is a plug-in whose file this worker lacks, or came without a new state version."""
    live = Shared()
    live.rows()
    live.control("create", key="k", spec={"learner": "h-tree"}, schema=SCHEMA)
    live.rows(key="k")
    live.commit()
    for entry in live.journal:
        for step in entry.steps:
            if step.records is not None:
                values = [value.replace(b"h-tree", b"x-tree") for value in step.records.values if value]
                object.__setattr__(step.records, "values", values)
    with pytest.raises(
        OtherReleaseError, match="command at t.controls:3:0 was carried out .* refuses it .*x-tree"
    ):
        live.replayed()


def test_settings_with_a_learner_that_is_not_here_stop_the_replay() -> None:
    live = Shared()
    live.rows()
    live.commit()
    assert live.journal[0].config is not None
    other = live.journal[0].config.replace("h-tree", "x-tree")
    live.journal[0] = replace(live.journal[0], config=other)
    with pytest.raises(OtherReleaseError, match="settings that this release cannot read: .*x-tree"):
        live.replayed()
