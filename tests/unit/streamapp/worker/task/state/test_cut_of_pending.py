"""Pending instances, early labels and names of ids in a cut: written once, gone when forgotten."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from streamapp.worker.task.effects.effects import Origin
from streamapp.worker.task.pending.early_labels import HeldLabel
from streamapp.worker.task.pending.entries import Kept, episode_of
from streamapp.worker.task.pending.pending import Pending
from streamapp.worker.task.state.cut import TASK
from streamapp.worker.task.state.list_unit import read_awaited, read_early, write_awaited, write_early
from streamapp.worker.task.state.pending_unit import (
    BLOCK_BYTES,
    BLOCK_ENTRIES,
    layout,
    read_block,
    write_block,
)
from streamapp.worker.task.task import Task
from streamapp.worker.task.unit import UnitName
from tests.topology.partition import ALWAYS, NOW, PARTITION, Partition, config, instance, label
from tests.unit.streamapp.worker.task.state.cutting import latest, partition_of

LIMIT = 512 << 10


def pending_of(
    n: int, width: int, *, start: int = 0, pending: Pending | None = None, since: int = 0
) -> Pending:
    """Return a store with `n` open instances more, one for each millisecond from `since` on."""
    pending = pending or Pending(10**9, 1 << 30)
    numbers = range(start, start + n)
    columns = np.zeros(n, dtype=np.int32), np.random.default_rng(start).random((n, width))
    requested, drawn = np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.int8)
    born = since + np.array(numbers, dtype=np.int64)
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
    pending_of(3000, 3, pending=pending, since=NOW)
    units = latest({}, partition.task.cut())
    pending.expire(NOW + BLOCK_ENTRIES + 5 + pending.memory_ms)
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
