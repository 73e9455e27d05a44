"""A cut holds one moment of a task while the task goes on, and says what is gone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from core.model.model import Model
from streamapp.worker.task.models.files.model_unit import MODEL, read_model
from streamapp.worker.task.state import cut as cuts
from streamapp.worker.task.state.cut import TASK, Cut
from streamapp.worker.task.task import Task
from streamapp.worker.task.unit import Unit, UnitName
from tests.property.test_task_cuts import SPECS, TTL, story
from tests.property.test_task_rollback import runs_of
from tests.topology.partition import PARTITION, Partition, config
from tests.unit.streamapp.worker.task.state.cutting import latest, partition_of


def in_the_middle() -> tuple[Partition, Partition, list[Any]]:
    """Return two equal partitions in the middle of a story, and the runs that are left of it."""
    given = config(SPECS["asks-again"], pending_ttl_ms=TTL, models_max_classes=6)
    one, other = Partition(given), Partition(given)
    runs = runs_of(story(5, 2000), 3)
    for run in runs[:100]:
        one.feed(*run)
        other.feed(*run)
    return one, other, runs[100:]


def names(cut: Cut) -> set[str]:
    return {str(unit.name) for unit in cut.units()}


def test_the_first_cut_holds_everything_and_the_next_what_changed() -> None:
    partition = partition_of("abc")
    first = partition.task.cut()
    everything = {"model 'a'#1", "model 'b'#2", "model 'c'#3", "pending '0'", "marks '0'", "task"}
    assert names(first) == everything
    assert first.removed == []
    first.done()
    partition.labels({"id": "b1", "label": "yes"}, key="b")
    second = partition.task.cut()
    assert names(second) == {"model 'b'#2", "pending '0'", "marks '0'", "task"}
    second.done()
    assert names(partition.task.cut()) == {"task"}


def test_what_an_abandoned_cut_held_is_in_the_next_one() -> None:
    partition = partition_of("ab")
    cut = partition.task.cut()
    before = dict.fromkeys(unit.name for unit in cut.units())
    cut.abandon()
    cut.abandon()  # as when a transaction is aborted twice over
    again = partition.task.cut()
    assert dict.fromkeys(unit.name for unit in again.units()) == before


def test_deleted_and_reset_models_are_gone_and_a_new_life_has_a_new_name() -> None:
    partition = partition_of("abc")
    units = latest({}, partition.task.cut())
    partition.control("delete", key="a")
    partition.control("reset", key="b")
    partition.instances({"id": "a2", "features": {"x": 2.0}}, key="a")
    cut = partition.task.cut()
    made = [unit.name for unit in cut.units()]
    assert {name for name in made if name.kind == MODEL} == {UnitName(MODEL, "a", 5), UnitName(MODEL, "b", 4)}
    assert cut.removed == [UnitName(MODEL, "a", 1), UnitName(MODEL, "b", 2)]
    cut.abandon()
    units = latest(units, partition.task.cut())
    assert UnitName(MODEL, "a", 1) not in units
    restored = Task.from_units(PARTITION, partition.task.config, None, units.values())
    assert restored.digest() == partition.task.digest()


def test_units_read_late_are_those_of_the_moment_of_the_cut() -> None:
    early, late, rest = in_the_middle()
    expected = {unit.name: unit.data for unit in early.task.cut().units()}
    cut = late.task.cut()
    step = cut.units()
    found = [next(step), next(step)]
    for run in rest:
        late.feed(*run)
    found += step
    assert len(rest) > 400
    assert {unit.name: unit.data for unit in found} == expected
    assert late.task.digest() != early.task.digest()


def test_large_models_are_copied_and_sealed_elsewhere_while_they_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    early, late, rest = in_the_middle()
    expected = {unit.name: unit.data for unit in early.task.cut().units()}
    monkeypatch.setattr(cuts, "LARGE_BYTES", 0)
    found, cut = dict[Any, bytes](), late.task.cut()
    runs = iter(rest)
    with ThreadPoolExecutor(1) as elsewhere:
        for piece in cut.pieces():
            late.feed(*next(runs))
            unit = piece if isinstance(piece, Unit) else elsewhere.submit(piece.seal).result()
            assert isinstance(piece, Unit) or cut.keep(unit)
            found[unit.name] = unit.data
    assert found == expected
    assert any(name.kind == MODEL for name in found)
    cut.done()


def test_a_large_model_that_is_as_it_was_is_not_stored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "LARGE_BYTES", 0)
    partition = partition_of("a")
    latest({}, partition.task.cut())
    partition.task.models.changes.mark(np.array([0]))
    cut = partition.task.cut()
    (large,) = (piece for piece in cut.pieces() if not isinstance(piece, Unit))
    assert large.size == large.record.ints.nbytes > 0
    assert not cut.keep(large.seal())


def test_a_model_is_copied_only_if_it_changes_before_its_unit_is_made() -> None:
    partition = partition_of("abcd")
    cut = partition.task.cut()
    step = cut.units()
    assert next(step).name.key == "a"
    for key in "ab":
        partition.instances({"id": f"{key}2", "features": {"x": 2.0}}, key=key)
    assert sorted(record.key for record in partition.task.models.changes._copies.values()) == ["b"]
    list(step)
    cut.done()
    assert not partition.task.models.changes._copies


def test_a_cut_changes_nothing_and_a_second_one_has_to_wait() -> None:
    partition = partition_of("a")
    before = partition.task.digest()
    cut = partition.task.cut()
    assert partition.task.digest() == before
    with pytest.raises(RuntimeError, match="must be done or abandoned before the next one"):
        partition.task.cut()
    with pytest.raises(RuntimeError, match="all units of the cut must be made"):
        _ = cut.removed
    with pytest.raises(RuntimeError, match="after all its units were made"):
        cut.done()
    list(cut.units())
    with pytest.raises(RuntimeError, match="must be taken once"):
        cut.units()
    cut.done()
    with pytest.raises(RuntimeError, match="is done once"):
        cut.done()
    assert partition.task.digest() == before


def test_a_frozen_model_changes_when_it_is_warned_of() -> None:
    partition = partition_of("a")
    grown = {"id": "a2", "features": {"x": 1.0}, "label": "yes"}
    partition.instances(grown, key="a")
    partition.control("freeze", key="a")
    units = latest({}, partition.task.cut())
    partition.instances({"id": "a3", "features": {"x": 1.0, "unknown": 2}}, key="a")
    cut = partition.task.cut()
    partition.control("freeze", key="a", frozen=False)
    (model,) = [unit for unit in cut.units() if unit.name.kind == MODEL]
    assert (read_model(model).warned, read_model(model).frozen) == (True, True)
    cut.abandon()
    units = latest(units, partition.task.cut())
    assert Task.from_units(PARTITION, partition.task.config, None, units.values()).models.warned


def test_a_model_that_has_seen_nothing_is_restored_as_one() -> None:
    partition = partition_of("a")
    partition.control("create", key="new", schema={"attributes": [{"name": "x"}]})
    units = latest({}, partition.task.cut())
    fresh = UnitName(MODEL, "new", 2)
    assert read_model(units[fresh]).fresh
    partition.instances({"id": "a2", "features": {"x": 1.0}}, key="a")
    units = latest(units, partition.task.cut())
    assert not read_model(units[fresh]).fresh
    assert not read_model(units[fresh]).model.summary().records


def test_the_same_state_gives_the_same_bytes_and_a_restored_task_has_nothing_to_write() -> None:
    records = story(8, 300)
    made = []
    for _ in range(2):
        partition = Partition(config(SPECS["asks-some"], pending_ttl_ms=TTL))
        for run in runs_of(records, 7):
            partition.feed(*run)
        made.append([unit.data for unit in partition.task.cut().units()])
    assert made[0] == made[1]
    units = latest({}, Partition(config()).task.cut())
    assert list(units) == [TASK]
    partition = Partition(config(SPECS["asks-some"], pending_ttl_ms=TTL))
    for run in runs_of(records, 7):
        partition.feed(*run)
    units = latest({}, partition.task.cut())
    again = Task.from_units(PARTITION, partition.task.config, None, units.values())
    assert [(unit.name, unit.data) for unit in again.cut().units()] == [(TASK, units[TASK].data)]


def test_counters_and_what_was_said_belong_to_the_process() -> None:
    partition = partition_of("ab", models_max_count=2)
    partition.instances({"id": "1", "features": {"x": 1.0}}, key="c")
    assert partition.task.counters
    quota = partition.task.models.keys.quota
    assert quota.reported
    units = latest({}, partition.task.cut())
    again = Task.from_units(PARTITION, partition.task.config, None, units.values())
    assert not again.counters
    assert not again.models.keys.quota.reported
    assert again.models.keys.quota.taken == 2
    assert (again.pending.expired, again.pending.dropped) == (0, 0)
    assert again.pending.waiting == partition.task.pending.waiting == 2
    for key in "ab":
        mine, theirs = (
            task.models.cache.model(task.models.keys.slot(key)) for task in (again, partition.task)
        )
        assert mine.summary() == theirs.summary()
        assert mine.summary().requests == 1


def test_the_model_of_a_unit_is_the_model() -> None:
    partition = partition_of("a")
    unit = next(partition.task.cut().units())
    stored = read_model(unit)
    assert isinstance(stored.model, Model)
    assert stored.model.snapshot() == partition.model("a").snapshot()
    assert (stored.open, stored.frozen, stored.warned, stored.known_classes) == (True, False, False, 0)
