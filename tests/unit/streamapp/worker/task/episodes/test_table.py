"""The table of open episodes: order, bounds, deadlines, undo."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from streamapp.worker.task.episodes.episode import EPISODE_BYTES, Episode
from streamapp.worker.task.episodes.episode_table import Episodes
from streamapp.worker.task.state.list_unit import read_episodes, write_episodes


def episode(name: str, serial: int, deadline: int = 100, opened: int = 0, width: int = 3) -> Episode:
    x = np.full(width, np.nan)
    status = np.zeros(width, dtype=np.int8)
    words = np.array([serial, 5], dtype=np.int64)
    return Episode(("m", name), serial, f"3-{serial}", opened, deadline, 1.0, x, status, words)


def test_the_earliest_deadline_is_the_first_whoever_came_first() -> None:
    table = Episodes()
    for serial, deadline in enumerate((50, 20, 20, 90)):
        table.put(episode(f"e{serial}", serial, deadline))
    assert table.oldest().name == ("m", "e0")
    assert table.overdue(20) is None  # at the deadline a value is in time
    order = []
    while (found := table.overdue(60)) is not None:
        order.append(found.name[1])
        table.remove(found.name)
    assert order == ["e1", "e2", "e0"]
    assert table.next_deadline() == 90


def test_a_clock_that_was_wrong_moves_the_deadlines_back() -> None:
    table = Episodes()
    table.put(episode("a", 0, deadline=1100, opened=1000))
    table.put(episode("b", 1, deadline=150, opened=50))
    table.turn(100)
    assert table.next_deadline() == 150
    table.remove(("m", "b"))
    assert table.next_deadline() == 200


def test_room_is_bounded_in_number_and_bytes() -> None:
    table = Episodes(max_count=2, max_bytes=10_000)
    one = episode("a", 0)
    assert one.size == EPISODE_BYTES + 9 * 3 + 8 * 2
    table.put(one)
    assert table.has_room(10_000 - one.size)
    assert not table.has_room(10_001 - one.size)
    table.put(episode("b", 1))
    assert not table.has_room(1)
    table.remove(("m", "a"))
    assert table.bytes == episode("b", 1).size


def test_an_episode_costs_no_more_than_is_said() -> None:
    n, width = 2000, 10
    gc.collect()
    tracemalloc.start()
    table = Episodes()
    for serial in range(n):
        table.put(episode(f"instance {serial:20}", serial, width=width))
        table.checkpoint()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used <= table.bytes
    assert used > table.bytes / 3  # and the bound is not far from what they cost


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), max_size=12))
def test_units_say_all_of_them(shapes: list[tuple[int, int]]) -> None:
    table = Episodes()
    for serial, (width, w) in enumerate(shapes):
        each = episode(f"e{serial}", serial, width=width)
        changed: dict[str, Any] = {"words": np.arange(w), "bought": (0, 1), "cost": 1.5, "questions": 2}
        table.put(each._replace(x=np.linspace(0, 1, width), **changed))
    units = list(write_episodes(table.image()))
    again = Episodes()
    again.load(*read_episodes(units))
    assert list(write_episodes(again.image())) == units
    assert (len(again), again.bytes, again.next_serial) == (len(table), table.bytes, table.next_serial)


class Undone(RuleBasedStateMachine):
    """Runs that end for good or are undone, beside a plain dictionary that is copied."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Episodes(max_count=50)
        self.expected: dict[tuple[str, str], Episode] = {}
        self.serial = 0
        self.mark = (dict(self.expected), self.serial)

    @rule(name=st.integers(0, 6), deadline=st.integers(0, 50), opened=st.integers(0, 50))
    def put(self, name: int, deadline: int, opened: int) -> None:
        key = ("m", f"e{name}")
        old = self.expected.get(key)
        serial = self.serial if old is None else old.serial
        found = episode(f"e{name}", serial, deadline if old is None else old.deadline, opened, name)
        self.expected[key] = found
        self.serial += old is None
        self.table.put(found)

    @rule(name=st.integers(0, 6))
    def remove(self, name: int) -> None:
        if self.expected.pop(("m", f"e{name}"), None) is not None:
            self.table.remove(("m", f"e{name}"))

    @rule(clock=st.integers(0, 50))
    def turn(self, clock: int) -> None:
        self.table.turn(clock)
        for name, each in self.expected.items():
            late = max(each.opened - clock, 0)
            self.expected[name] = each._replace(opened=each.opened - late, deadline=each.deadline - late)

    @rule()
    def checkpoint(self) -> None:
        self.table.checkpoint()
        self.mark = (dict(self.expected), self.serial)

    @rule()
    def rollback(self) -> None:
        self.table.rollback()
        self.expected, self.serial = dict(self.mark[0]), self.mark[1]

    @invariant()
    def same(self) -> None:
        wanted = sorted(self.expected.values(), key=lambda each: each.serial)
        image = self.table.image()
        said = [(each.name, each.serial, each.opened, each.deadline) for each in image.episodes]
        assert said == [(each.name, each.serial, each.opened, each.deadline) for each in wanted]
        assert image.next == self.serial
        assert self.table.bytes == sum(each.size for each in wanted)
        first = min((each.deadline for each in wanted), default=None)
        assert self.table.next_deadline() == first


TestUndone = Undone.TestCase
