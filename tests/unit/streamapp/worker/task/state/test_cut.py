"""A cut holds one moment of a task while the task goes on, and says what is gone."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from core.model.model import Model
from streamapp.worker.task.effects.effects import Origin
from streamapp.worker.task.models.model_unit import MODEL, read_model
from streamapp.worker.task.pending.early_labels import HeldLabel
from streamapp.worker.task.pending.entries import Kept, episode_of
from streamapp.worker.task.pending.pending import Pending
from streamapp.worker.task.state import cut as cuts
from streamapp.worker.task.state.cut import TASK, Cut
from streamapp.worker.task.state.list_unit import read_awaited, read_early, write_awaited, write_early
from streamapp.worker.task.state.pending_unit import (
    BLOCK_BYTES,
    BLOCK_ENTRIES,
    layout,
    read_block,
    write_block,
)
from streamapp.worker.task.task import Task
from streamapp.worker.task.unit import Unit, UnitName
from tests.property.test_task_cuts import SPECS, TTL, story
from tests.property.test_task_rollback import runs_of
from tests.topology.partition import ALWAYS, NOW, PARTITION, Partition, config, instance, label

LIMIT = 512 << 10


def latest(units: dict[UnitName, Unit], cut: Cut) -> dict[UnitName, Unit]:
    """Return units with what a cut changed, which is then done."""
    made = {unit.name: unit for unit in cut.units()}
    left = {name: unit for name, unit in units.items() if name not in cut.removed}
    cut.done()
    return left | made


def partition_of(keys: str, **settings: Any) -> Partition:
    partition = Partition(config(ALWAYS, **settings))
    partition.feed(*(instance({"id": f"{key}1", "features": {"x": 1.0}}, key=key) for key in keys))
    return partition


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
    quota = partition.task.models.quota
    assert quota.reported
    units = latest({}, partition.task.cut())
    again = Task.from_units(PARTITION, partition.task.config, None, units.values())
    assert not again.counters
    assert not again.models.quota.reported
    assert again.models.quota.taken == 2
    assert (again.pending.expired, again.pending.dropped) == (0, 0)
    assert again.pending.waiting == partition.task.pending.waiting == 2
    for key in "ab":
        mine, theirs = (task.models.model(task.models.slot(key)) for task in (again, partition.task))
        assert mine.summary() == theirs.summary()
        assert mine.summary().requests == 1


# -- pending instances ---------------------------------------------------------------------------------------


def pending_of(n: int, width: int, *, start: int = 0, pending: Pending | None = None) -> Pending:
    pending = pending or Pending(10**9, 1 << 30)
    numbers = range(start, start + n)
    columns = np.zeros(n, dtype=np.int32), np.random.default_rng(start).random((n, width))
    requested, drawn = np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.int8)
    born = np.array(numbers, dtype=np.int64)
    widths = np.full(n, width, dtype=np.int32)
    kept = Kept(
        [("m", f"i{k}") for k in numbers],
        *columns,
        widths,
        columns[0] - 1,
        requested,
        drawn,
        np.zeros(n),
        born,
    )
    pending.keep(kept)
    return pending


def test_full_blocks_are_written_once() -> None:
    partition = partition_of("m")
    pending_of(3000, 3, pending=partition.task.pending)
    units = latest({}, partition.task.cut())
    starts = [int(name.key) for name in units if name.kind == "pending"]
    assert starts == [0, BLOCK_ENTRIES, 2 * BLOCK_ENTRIES]
    serial, state = partition.task.pending.find(("m", "i100"), 0)
    assert state == "open"
    partition.task.pending.settle(serial)
    pending_of(100, 3, start=3000, pending=partition.task.pending)
    cut = partition.task.cut()
    changed = [name for name in (unit.name for unit in cut.units()) if name != TASK]
    assert changed == [
        UnitName("marks", "0"),
        UnitName("pending", str(2 * BLOCK_ENTRIES)),
        UnitName("marks", str(2 * BLOCK_ENTRIES)),
        UnitName("pending", str(3 * BLOCK_ENTRIES)),
        UnitName("marks", str(3 * BLOCK_ENTRIES)),
    ]


def test_blocks_of_forgotten_instances_are_gone() -> None:
    partition = partition_of("m")
    pending = partition.task.pending
    pending_of(3000, 3, pending=pending)
    units = latest({}, partition.task.cut())
    pending._forget(BLOCK_ENTRIES + 5)
    cut = partition.task.cut()
    list(cut.units())
    assert cut.removed == [UnitName("pending", "0"), UnitName("marks", "0")]
    cut.abandon()
    units = latest(units, partition.task.cut())
    again = Task.from_units(PARTITION, partition.task.config, None, units.values())
    assert again.digest() == partition.task.digest()
    assert again.pending.find(("m", "i1100"), 0)[1] == "open"
    assert again.pending.bytes == pending.bytes


def test_an_image_keeps_what_the_store_gives_back() -> None:
    pending = pending_of(2000, 5)
    pending.checkpoint()
    image = pending.image()
    blocks = layout(image, ())
    before = [write_block(image, block).data for block in blocks]
    for serial in range(1800):
        pending.settle(serial)
    pending.checkpoint()  # closes the gaps in the words
    assert pending._n_words == 200 * 5
    pending._forget(1700)
    pending.checkpoint()  # gives back the rows
    assert pending._base == 1700
    pending_of(3000, 5, start=2000, pending=pending)
    assert [write_block(image, block).data for block in blocks] == before
    again = Pending(10**9, 1 << 30)
    again.load(pending.image())
    for serial in (1900, 2500, 4999):
        assert again.find(("m", f"i{serial}"), 0) == (serial, "open")
        row = np.array([serial])
        assert (again.features(row, 5) == pending.features(row, 5)).all()


def test_ids_of_a_model_that_is_gone_stay_unknown() -> None:
    partition = partition_of("ab")
    partition.control("delete", key="a")
    partition.instances({"id": "a9", "features": {"x": 1.0}}, key="a")
    units = latest({}, partition.task.cut())
    again = Task.from_units(PARTITION, partition.task.config, None, units.values())
    for task in (partition.task, again):
        assert task.pending.find(("a", "a1"), task.clock or 0)[1] == "unknown"
        assert task.pending.find(("a", "a9"), task.clock or 0)[1] == "open"
        assert task.pending.find(("b", "b1"), task.clock or 0)[1] == "open"


def test_an_id_that_came_again_is_that_of_the_last_time() -> None:
    partition = partition_of("a", pending_ttl_ms=100)
    partition.instances({"id": "a1", "features": {"x": 5.0}}, key="a", at=150)
    assert partition.task.pending.find(("a", "a1"), NOW + 150) == (1, "open")
    units = latest({}, partition.task.cut())
    again = Task.from_units(PARTITION, partition.task.config, None, units.values())
    assert again.pending.find(("a", "a1"), NOW + 150) == (1, "open")
    assert len(again.pending) == len(partition.task.pending) == 1


def test_every_unit_is_bounded_whatever_is_kept() -> None:
    wide = pending_of(300, 4096)
    for block in layout(wide.image(), ()):
        assert len(write_block(wide.image(), block).data) < LIMIT
    narrow = pending_of(5000, 1)
    blocks = layout(narrow.image(), ())
    assert max(block.stop - block.start for block in blocks) == BLOCK_ENTRIES
    assert [block.closed for block in blocks] == [True] * (len(blocks) - 1) + [False]
    huge = pending_of(2, 40_000)
    assert [block.stop - block.start for block in layout(huge.image(), ())] == [1, 1]
    assert BLOCK_BYTES < LIMIT
    specs = {f"key {n}" * 20: partition_of("a").task._state.default_spec for n in range(2000)}
    units = list(write_awaited(specs))
    assert max(len(unit.data) for unit in units) < LIMIT
    assert read_awaited(units) == specs


def test_a_block_survives_every_text_and_number() -> None:
    pending = Pending(1000, 1 << 20)
    texts = ["", "é", "\ud800", "a" * 1000, "\0", "日本"]
    n = len(texts)
    x = np.array([[np.nan, np.inf], [-0.0, 5e-324], [1.0, 2.0], [0.1, 1e308], [3.0, 4.0], [5.0, 6.0]])
    pending.keep(
        Kept(
            [(f"{text}k", text) for text in texts],
            np.zeros(n, dtype=np.int32),
            x,
            np.array([2, 2, 1, 2, 0, 2], dtype=np.int32),
            np.array([-1, 0, 1, 2, 3, 4], dtype=np.int32),
            np.array([True, False] * 3),
            np.array([0, 1, 2, 0, 1, 2], dtype=np.int8),
            np.array([0.0, 1.0, 0.1, 1e300, 5e-324, 7.25]),
            np.array([-5, 0, 1, 2, 3, 1 << 60], dtype=np.int64),
        )
    )
    image = pending.image()
    found = read_block(write_block(image, layout(image, ())[0]))
    assert found.names == image.names
    for column in ("born", "width", "prediction", "requested", "sampled", "importance"):
        assert (found.rows[column] == image.rows[column]).all()
    assert found.words.tobytes() == image.words[:9].tobytes()


def test_the_words_of_episodes_survive_whatever_number_their_bits_are() -> None:
    words = np.array([-1, 0x7FF0000000000001, 1 << 62, 0, -(1 << 63)], dtype=np.int64)  # the second signals
    pending = pending_of(3, 2)
    x = np.concatenate((np.array([[0.5, np.nan]]), words.view(np.float64)[np.newaxis]), axis=1)
    one = np.ones(1, dtype=np.int32)
    pending.keep(
        Kept(
            [("m", "played")],
            one,
            x,
            7 * one,
            one,
            one.astype(np.bool_),
            one.astype(np.int8),
            np.ones(1),
            np.array([5], dtype=np.int64),
            episode=5,
        )
    )
    image = pending.image()
    found = read_block(write_block(image, layout(image, ())[0]))
    assert found.rows["episode"].tolist() == [0, 0, 0, 5]
    assert episode_of(found.rows[3], found.words).tolist() == words.tolist()
    assert pending.episode(3).tolist() == words.tolist()
    assert pending.features(np.array([3]), 3).tolist()[0][0] == 0.5
    assert np.isnan(pending.features(np.array([3]), 3)[0, 1:]).all(), "no feature is made of them"
    before = pending.bytes
    pending.settle(3)
    assert before - pending.bytes == 8 * 7
    without = pending_of(3, 2).image()
    assert b"episodes" not in write_block(without, layout(without, ())[0]).data, "others are as they were"


# -- early labels --------------------------------------------------------------------------------------------


def held(number: int, value: bytes | None, *, offset: int, block_row: int | None = None) -> HeldLabel:
    headers: Any = (("h", b"1"), ("h", None), ("é", b""))
    origin = Origin("labels", 3, offset, 17, None if offset % 2 else b"\xff", value, headers)
    return HeldLabel(f"class {number}", 0.1 + number, number, origin, block_row, 5, number % 3 == 0)


def test_early_labels_are_bounded_and_a_record_is_written_once() -> None:
    block = b"x" * 100_000
    labels = {("m", f"b{n}"): held(n, block, offset=7, block_row=n) for n in range(3000)}
    labels |= {("m", f"s{n}"): held(n, b"y" * 1000 if n % 5 else None, offset=8 + n) for n in range(2000)}
    units = list(write_early(labels))
    assert sum(unit.data.count(block) for unit in units) == 1
    assert max(len(unit.data) for unit in units[1:]) < LIMIT
    found = read_early(units)
    assert found == labels
    assert list(found) == list(labels)
    assert found["m", "b1"].origin is found["m", "b2"].origin


def test_early_labels_are_found_again_by_their_instances() -> None:
    partition = partition_of("m")
    partition.feed(label({"id": "soon", "label": "yes"}), label({"id": "soon", "label": "no"}))
    units = latest({}, partition.task.cut())
    assert any(name.kind == "early" for name in units)
    again = Partition(partition.task.config)
    again.task = Task.from_units(PARTITION, partition.task.config, None, units.values())
    again._offsets.update(partition._offsets)
    for each in (partition, again):
        each.instances({"id": "soon", "features": {"x": 3.0}})
        assert each.counts["early.learned"] == 1
    assert again.task.digest() == partition.task.digest()


# -- names ---------------------------------------------------------------------------------------------------


def test_names_are_told_apart_as_bytes() -> None:
    draw = random.Random(1)
    texts = ["", "a", "a/b", '"', "\ud800", "é", "a#1"]
    all_names = [
        UnitName(kind, key, draw.randrange(3)) for kind in ("model", "marks", "pending") for key in texts
    ]
    assert len({name.encode() for name in all_names}) == len(set(all_names))
    assert [UnitName.decode(name.encode()) for name in all_names] == all_names


def test_the_model_of_a_unit_is_the_model() -> None:
    partition = partition_of("a")
    unit = next(partition.task.cut().units())
    stored = read_model(unit)
    assert isinstance(stored.model, Model)
    assert stored.model.snapshot() == partition.model("a").snapshot()
    assert (stored.open, stored.frozen, stored.warned, stored.known_classes) == (True, False, False, 0)


def test_a_clock_that_was_turned_back_changes_what_full_blocks_hold() -> None:
    given_ = config(ALWAYS, pending_ttl_ms=5000, event_time_max_jump_ms=1000)
    partition = Partition(given_)
    rows = [instance({"id": f"i{n}", "features": {"x": 1.0}}) for n in range(BLOCK_ENTRIES + 10)]
    partition.feed(*rows)
    partition.instances({"id": "wrong", "features": {"x": 1.0}}, {"features": {"x": 1.0}}, at=7000)
    units = latest({}, partition.task.cut())
    image = partition.task.pending.image()
    born = image.rows["born"].copy()
    partition.instances({"id": "right", "features": {"x": 1.0}}, {"features": {"x": 1.0}}, at=10)
    assert np.array_equal(image.rows["born"], born)
    assert not np.array_equal(partition.task.pending.image().rows["born"][: len(born)], born)
    units = latest(units, partition.task.cut())
    assert Task.from_units(PARTITION, given_, None, units.values()).digest() == partition.task.digest()
