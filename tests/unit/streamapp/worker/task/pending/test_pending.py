"""Pending instances: what is remembered, for how long, at what price, and that a run can be undone."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import numpy as np
import pytest

from core.active.label_account import EXPIRED
from streamapp.worker.task.pending.entries import ENTRY_BYTES, NAME_BYTES, Kept
from streamapp.worker.task.pending.name_columns import Name
from streamapp.worker.task.pending.pending import Pending

TTL = 100


def kept(
    ids: list[str],
    born: int | list[int] = 0,
    *,
    model: int = 0,
    width: int | list[int] = 2,
    requested: bool = True,
    key: str = "m",
) -> Kept:
    n = len(ids)
    widths = np.broadcast_to(np.array(width, dtype=np.int32), n)
    x = np.arange(n * int(widths.max()), dtype=np.float64).reshape(n, -1) + 10 * n
    return Kept(
        [(key, name) for name in ids],
        np.full(n, model, dtype=np.int32),
        x,
        widths,
        np.arange(n, dtype=np.int32),
        np.full(n, requested),
        np.zeros(n, dtype=np.int8),
        np.arange(n) / 4.0,
        np.broadcast_to(np.array(born, dtype=np.int64), n),
    )


def states(pending: Pending, ids: list[str], clock: int) -> list[str]:
    serials = pending.serials([("m", name) for name in ids]).tolist()
    return [pending.state_of(serial, clock)[1] for serial in serials]


def test_an_instance_is_open_then_expired_then_unknown() -> None:
    pending = Pending(TTL, 1 << 20)
    pending.keep(kept(["a"], born=1000))
    assert [states(pending, ["a"], 1000 + age)[0] for age in (0, 100, 101, 200, 201)] == [
        "open",
        "open",
        "expired",
        "expired",
        "unknown",
    ]


def test_features_come_back_as_they_were_kept_and_missing_columns_are_nan() -> None:
    pending = Pending(TTL, 1 << 20)
    rows = kept(["a", "b", "c"], width=[1, 3, 2])
    pending.keep(rows)
    serials = np.array([pending.find(("m", name), 0)[0] for name in "cab"])
    x = pending.features(serials, 4)
    assert np.array_equal(
        x,
        [
            [rows.x[2, 0], rows.x[2, 1], np.nan, np.nan],
            [rows.x[0, 0], np.nan, np.nan, np.nan],
            [*rows.x[1], np.nan],
        ],
        equal_nan=True,
    )
    assert pending.answered(int(serials[0])) == (2, True, 0, 0.5)


def test_a_settled_instance_is_remembered_without_its_features() -> None:
    pending = Pending(TTL, 1 << 20)
    pending.keep(kept(["a", "b"], width=4))
    pending.settle(pending.find(("m", "a"), 0)[0])
    assert states(pending, ["a", "b"], 5) == ["settled", "open"]
    assert pending.bytes == 2 * ENTRY_BYTES + 8 * 4
    assert (pending.waiting, len(pending)) == (1, 2)


def test_expiry_counts_only_those_that_still_waited() -> None:
    pending = Pending(TTL, 1 << 20)
    pending.keep(kept(["a", "b", "c"], born=[0, 0, 50]))
    pending.settle(pending.find(("m", "a"), 0)[0])
    pending.expire(101)
    assert (pending.expired, pending.dropped, pending.waiting) == (1, 0, 1)
    assert pending.bytes == 3 * ENTRY_BYTES + 8 * 2
    pending.expire(251)
    assert (pending.expired, pending.dropped, len(pending), pending.bytes) == (2, 0, 0, 0)


def test_the_oldest_make_room_and_are_counted() -> None:
    one = ENTRY_BYTES + 16
    pending = Pending(TTL, 32 * one)
    pending.keep(kept([f"i{i}" for i in range(40)]))
    # The 33rd did not fit: a sixteenth (two entries) was freed beside its own place, and so on.
    assert pending.bytes <= 32 * one
    assert pending.dropped == 40 - len(pending) == 9
    assert states(pending, ["i8", "i9", "i39"], 0) == ["unknown", "open", "open"]


def test_an_instance_larger_than_the_room_is_not_kept() -> None:
    pending = Pending(TTL, 1000)
    pending.keep(kept(["small", "huge", "next"], width=[1, 200, 1]))
    assert states(pending, ["small", "huge", "next"], 0) == ["open", "unknown", "open"]
    assert pending.dropped == 1


def test_what_is_due_is_forgotten_before_anything_else_makes_room() -> None:
    pending = Pending(TTL, 4 * (ENTRY_BYTES + 16))
    pending.keep(kept(["a", "b", "c"], born=0))
    pending.keep(kept(["d", "e", "f", "g"], born=500))
    assert (pending.dropped, pending.expired) == (0, 3)
    assert states(pending, ["a", "d", "g"], 500) == ["unknown", "open", "open"]


def test_the_same_id_of_two_models_is_two_instances() -> None:
    pending = Pending(TTL, 1 << 20)
    pending.keep(kept(["a"], key="m"))
    pending.keep(kept(["a"], key="n"))
    pending.settle(pending.find(("m", "a"), 0)[0])
    assert pending.find(("n", "a"), 0)[1] == "open"
    assert pending.serials([("n", "a"), ("k", "a"), ("m", "b"), ("m", "a")]).tolist() == [1, -1, -1, 0]


def test_an_expired_name_may_come_again() -> None:
    pending = Pending(TTL, 1 << 20)
    pending.keep(kept(["a"], born=0))
    pending.keep(kept(["a"], born=150))
    assert states(pending, ["a"], 150) == ["open"]
    pending.expire(201)
    assert states(pending, ["a"], 201) == ["open"]
    assert pending.expired == 1


def test_forgetting_a_model_leaves_the_others() -> None:
    pending = Pending(TTL, 1 << 20)
    pending.keep(kept(["a", "b"], model=1))
    pending.keep(kept(["c"], model=2))
    pending.settle(pending.find(("m", "b"), 0)[0])
    pending.forget_model(1)
    assert states(pending, ["a", "b", "c"], 0) == ["unknown", "unknown", "open"]
    assert pending.dropped == 1


def test_memory_is_given_back_when_labels_come() -> None:
    pending = Pending(1000, 1 << 30)
    for round_ in range(200):
        pending.checkpoint()
        ids = [f"{round_}-{i}" for i in range(100)]
        pending.keep(kept(ids, born=round_ * 100, width=50))
        for name in ids:
            pending.settle(pending.find(("m", name), round_ * 100)[0])
        pending.expire(round_ * 100)
    assert pending.waiting == 0
    assert len(pending) == 2100  # the last 2000 ms and the run at hand
    assert len(pending._words) < 20_000
    assert len(pending._rows) < 10_000


def test_gaps_are_closed_seldom_beside_many_ids_that_are_remembered() -> None:
    pending = Pending(10_000, 1 << 30)
    closed = 0
    for round_ in range(100):
        words = pending._words
        pending.checkpoint()
        closed += pending._words is not words
        ids = [f"{round_}-{i}" for i in range(200)]
        pending.keep(kept(ids, born=round_, width=10))
        serials = np.array([pending.find(("m", name), round_)[0] for name in ids])
        pending.settle_open(serials)
    assert len(pending) == 20_000
    # Each closing looks at every id, and waits for as many words: 2,000 come in a round, 200 ids.
    assert closed < 35
    assert len(pending._words) < 3 * len(pending)


def test_rows_are_copied_once_for_an_image_and_not_without_one() -> None:
    pending = Pending(10_000, 1 << 30)

    def closing(name: str) -> bool:
        """Close gaps; return whether the rows were moved."""
        pending.keep(kept([f"{name}{i}" for i in range(20)], width=100))
        rows = pending._rows
        pending.settle_open(np.arange(pending.next_serial - 20, pending.next_serial))
        pending.checkpoint()
        assert pending._n_words == 0
        return pending._rows is not rows

    assert not closing("a")
    image = pending.image()
    assert closing("b")
    assert not closing("c")
    assert (len(image.rows), bool(image.settled.all()), len(pending)) == (20, True, 60)


@pytest.mark.parametrize("width", [2, 50])
def test_the_bytes_counted_are_the_bytes_taken(width: int) -> None:
    tracemalloc.start()
    pending = Pending(TTL, 1 << 30)
    before = tracemalloc.get_traced_memory()[0]
    for start in range(0, 20_000, 100):
        pending.keep(kept([f"1-{start + i:07d}" for i in range(100)], width=width))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 0.3 < taken / pending.bytes < 1.1


# -- property: a slow twin, any cut, any rollback ------------------------------------------------------------


IDS = [str(i) if i % 5 else f"{i}{'ä' * i}" for i in range(120)]
"""Among them ids that are long."""


def beyond(name: Name) -> int:
    """Return the bytes of a name that count beside its entry."""
    return max(0, sum(len(text) * (1 if text.isascii() else 4) for text in name) - NAME_BYTES)


class Twin:
    """The same rules an entry at a time, in a list."""

    def __init__(self, ttl: int, max_bytes: int) -> None:
        self.ttl, self.max_bytes = ttl, max_bytes
        self.entries: list[dict[str, Any]] = []
        self.expired = self.dropped = 0

    def size(self) -> int:
        return sum(
            ENTRY_BYTES + beyond(e["name"]) + (8 * e["width"] if e["holds"] else 0) for e in self.entries
        )

    def expire(self, clock: int) -> None:
        for e in self.entries:
            if e["holds"] and clock - e["born"] > self.ttl:
                e["holds"] = False
                self.expired += 1
        self.entries = [e for e in self.entries if clock - e["born"] <= 2 * self.ttl]

    def keep(self, name: Name, width: int, clock: int) -> None:
        self.expire(clock)
        size = ENTRY_BYTES + beyond(name) + 8 * width
        if size > self.max_bytes:
            self.dropped += 1
            return
        if self.size() + size > self.max_bytes:
            while self.entries and self.size() + size > self.max_bytes - self.max_bytes // 16:
                self.dropped += bool(self.entries.pop(0)["holds"])
        self.entries.append({"name": name, "width": width, "born": clock, "holds": True, "settled": False})

    def find(self, name: Name, clock: int) -> str:
        for e in reversed(self.entries):
            if e["name"] == name:
                if clock - e["born"] > 2 * self.ttl:
                    return "unknown"
                if e["settled"]:
                    return "settled"
                return "expired" if clock - e["born"] > self.ttl else "open"
        return "unknown"

    def settle(self, name: Name) -> None:
        entry = next(e for e in reversed(self.entries) if e["name"] == name)
        entry["settled"], entry["holds"] = True, False


@pytest.mark.parametrize("seed", range(25))
def test_any_history_agrees_with_the_slow_twin_and_every_run_can_be_undone(seed: int) -> None:
    draw = random.Random(seed)
    max_bytes = draw.choice([2_000, 10_000, 1 << 20])
    pending, twin = Pending(TTL, max_bytes), Twin(TTL, max_bytes)
    clock = 0
    for step in range(60):
        clock += draw.choice([0, 1, 30, 90])
        pending.checkpoint()
        if draw.random() < 0.4:  # a run that is undone leaves no trace
            before = seen(pending, clock)
            change(draw, pending, None, clock, step)
            pending.rollback()
            assert seen(pending, clock) == before
        change(draw, pending, twin, clock, step)
        pending.expire(clock)
        twin.expire(clock)
        assert (pending.bytes, pending.expired, pending.dropped) == (twin.size(), twin.expired, twin.dropped)
        again = Pending(TTL, max_bytes)
        again.load(pending.image())
        assert again.bytes == pending.bytes
        assert states(pending, IDS, clock) == [twin.find(("m", text), clock) for text in IDS]


def seen(pending: Pending, clock: int) -> tuple[Any, ...]:
    """Return what runs see of the store, and what it counts."""
    serials = pending.serials([("m", text) for text in IDS]).tolist()
    counts = pending.bytes, pending.expired, pending.dropped, pending.waiting, len(pending), pending.first
    return serials, states(pending, IDS, clock), counts


def change(draw: random.Random, pending: Pending, twin: Twin | None, clock: int, step: int) -> None:
    """Keep some instances in one call and settle some; the twin does it one by one."""
    found = zip(IDS, states(pending, IDS, clock), strict=True)
    free = [name for name, state in found if state in ("unknown", "expired")]
    ids = draw.sample(free, min(len(free), draw.randrange(0, 12)))
    if ids:
        widths = [draw.randrange(1, 9) for _ in ids]
        born = sorted(clock + draw.randrange(0, 5) for _ in ids)
        pending.keep(kept(ids, born=born, width=widths))
        if twin is not None:
            for name, width, at in zip(ids, widths, born, strict=True):
                twin.keep(("m", name), width, at)
    clock += 5
    found = zip(IDS, states(pending, IDS, clock), strict=True)
    for name in [name for name, state in found if state == "open"]:
        if draw.random() < 0.3:
            pending.settle(pending.find(("m", name), clock)[0])
            if twin is not None:
                twin.settle(("m", name))


def test_the_states_of_many_are_those_of_each() -> None:
    pending = Pending(TTL, 1 << 20)
    pending.keep(kept(["old"], born=0))
    pending.keep(kept(["a", "b", "c", "d", "e"], born=200))
    pending.settle(pending.find(("m", "b"), 200)[0])
    names = [("m", name) for name in ("a", "b", "c", "c", "nobody", "d", "b", "b", "e", "old")]
    clock = np.array([200, 200, 200, 301, 200, 400, 400, 401, 401, 150], dtype=np.int64)
    is_open, is_settled, is_remembered = pending.states_of(pending.serials(names), clock)
    states = [pending.find(name, at)[1] for name, at in zip(names, clock.tolist(), strict=True)]
    assert is_open.tolist() == [state == "open" for state in states]
    assert is_settled.tolist() == [state == "settled" for state in states]
    assert is_remembered.tolist() == [state != "unknown" for state in states]
    assert {*states} == {"open", "settled", "expired", "unknown"}


def test_many_are_settled_as_one_is_and_come_back() -> None:
    one, many = Pending(TTL, 1 << 20), Pending(TTL, 1 << 20)
    ids = [f"i{i}" for i in range(6)]
    for pending in (one, many):
        pending.keep(kept(ids, born=[0, 0, 5, 5, 9, 9], width=[1, 2, 3, 1, 2, 3]))
        pending.checkpoint()
        pending.expire(TTL + 3)  # the first two have given up their features
    before = many.bytes
    serials = [one.find(("m", name), 0)[0] for name in ("i0", "i2", "i5")]
    for serial in serials:
        one.settle(serial)
    many.settle_open(np.array(serials))
    assert many.bytes == one.bytes == before - 8 * (3 + 3)
    assert many.waiting == one.waiting
    columns = [column.tolist() for column in many.answers(np.array(serials))]
    assert [*zip(*columns, strict=True)] == [one.answered(serial) for serial in serials]
    for pending in (one, many):
        pending.rollback()
        assert states(pending, ids, 0) == ["open"] * 6


def test_a_clock_that_goes_back_counts_what_waits_from_there_and_brings_nothing_back() -> None:
    pending = Pending(TTL, 1 << 20)
    pending.keep(kept(["old", "settled"], born=1000))
    pending.settle(pending.find(("m", "settled"), 1000)[0])
    assert pending.close_due(90_000) == {(0, EXPIRED): 1}
    pending.expire(1150)
    pending.keep(kept(["new"], born=90_000))
    before = pending.column("born", np.arange(3)).tolist()
    pending.checkpoint()
    pending.turn(1010)
    assert states(pending, ["old", "settled", "new"], 1010) == ["expired", "settled", "open"]
    assert states(pending, ["new", "new"], 1010 + TTL) == ["open", "open"]
    assert states(pending, ["old", "new"], 1011 + TTL) == ["unknown", "expired"]
    assert pending.close_due(1010) == {}, "it is told once that a request has expired"
    assert pending.waiting == 1
    pending.expire(1011 + TTL)
    assert pending.waiting == 0
    pending.rollback()
    assert pending.column("born", np.arange(3)).tolist() == before


def test_times_that_a_clock_went_back_to_ascend() -> None:
    pending = Pending(TTL, 1 << 20)
    for at in (700, 900, 950, 1000, 1090):
        pending.keep(kept([f"i{at}"], born=at))
    pending.expire(1095)
    pending.keep(kept(["late"], born=1100))
    pending.turn(960)
    assert pending.column("born", np.arange(pending.first, 6)).tolist() == [859, 859, 960, 960, 960]
    names = ["i700", "i900", "i950", "i1000", "i1090", "late"]
    assert states(pending, names, 960) == ["unknown", "expired", "expired", "open", "open", "open"]


def test_long_ids_and_keys_count() -> None:
    pending = Pending(TTL, 1 << 20)
    key, ids = "k" * 1000, [f"{number}-" + "x" * (1 << 16) for number in range(60)]
    for text in ids:
        pending.keep(kept([text], key=key))
    held = sum(len(key) + len(text) for text in ids if pending.find((key, text), 0)[1] != "unknown")
    assert 14 <= len(pending) <= 15
    assert held <= pending.bytes <= 1 << 20
    again = Pending(TTL, 1 << 20)
    again.load(pending.image())
    assert again.bytes == pending.bytes
