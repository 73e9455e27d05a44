"""A task that was restored from its units goes on as the one that never stopped, wherever it was cut."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamapp.worker.task.state.cut import Cut
from streamapp.worker.task.task import Task
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.task.unit import Unit, UnitName
from tests.property.test_task_cuts import SPECS, TTL, assert_same, outcome, story
from tests.property.test_task_rollback import runs_of
from tests.tiers import examples
from tests.topology.partition import PARTITION, Partition, config

LIMITS: dict[str, Any] = {"pending_ttl_ms": TTL, "models_max_classes": 6, "models_max_count": 3}


class Store:
    """The latest unit of each name; cuts begin, are read and end between runs, as chance has it."""

    def __init__(self, partition: Partition, draw: random.Random, units: dict[UnitName, Unit]) -> None:
        self.units = dict(units)
        self.last: tuple[int, bytes] | None = None  # run, digest: at the last finished cut
        self._partition, self._draw = partition, draw
        self._cut: Cut | None = None
        self._left: Iterator[Unit] = iter(())
        self._taken: dict[UnitName, Unit] = {}
        self._at = (0, b"")

    def step(self, run: int) -> None:
        """Begin a cut, take some of its units, finish or abandon it."""
        if self._cut is None:
            if self._draw.random() < 0.5:
                self._begin(run)
        elif self._exhausted(self._draw.choice([0, 1, 3, 1000])):
            self._end(abandon=self._draw.random() < 0.3)
        elif self._draw.random() < 0.05:
            self._end(abandon=True)

    def finish(self, run: int) -> None:
        """Finish a cut of now."""
        if self._cut is not None:
            self._end(abandon=True)
        self._begin(run)
        assert self._exhausted(10**6)
        self._end(abandon=False)

    def _begin(self, run: int) -> None:
        self._cut = self._partition.task.cut()
        self._left, self._taken = self._cut.units(), {}
        self._at = (run, self._partition.task.digest())

    def _exhausted(self, n: int) -> bool:
        for _ in range(n):
            unit = next(self._left, None)
            if unit is None:
                return True
            assert unit.name not in self._taken
            self._taken[unit.name] = unit
        return False

    def _end(self, *, abandon: bool) -> None:
        assert self._cut is not None
        if abandon:
            self._cut.abandon()
        else:
            for name in self._cut.removed:
                del self.units[name]
            self.units |= self._taken
            self._cut.done()
            self.last = self._at
        self._cut = None


def restored(store: Store, given_: TaskConfig, offsets: dict[Any, int]) -> Partition:
    partition = Partition(given_)
    units = list(store.units.values())
    random.Random(len(units)).shuffle(units)
    partition.task = Task.from_units(PARTITION, given_, None, units)
    partition._offsets.update(offsets)
    return partition


def said(partition: Partition) -> tuple[dict[str, int], int]:
    return {topic: len(records) for topic, records in partition.sent.items()}, len(partition.notices)


def since(partition: Partition, before: tuple[dict[str, int], int]) -> dict[str, Any]:
    """Return what came out since `said`."""
    sent = {topic: records[before[0].get(topic, 0) :] for topic, records in partition.sent.items()}
    # A worker says once that it is full; that it has said so belongs to the process.
    notices = [notice for notice in partition.notices[before[1] :] if not notice.text.startswith("no room")]
    return {"sent": {t: r for t, r in sent.items() if r}, "notices": notices}


@settings(max_examples=examples(15))
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(sorted(SPECS)),
    keep=st.sampled_from(["requested", "all"]),
    max_bytes=st.sampled_from([4096, 16_384, 1 << 20]),
    handler=st.sampled_from(["stop-partition", "dead-letter"]),
)
@example(seed=45, kind="committee", keep="requested", max_bytes=4096, handler="stop-partition")  # of leaves
def test_a_restored_task_goes_on_as_the_one_that_never_stopped(
    seed: int, kind: str, keep: Any, max_bytes: int, handler: Any
) -> None:
    given_ = config(
        SPECS[kind],
        pending_keep=keep,
        pending_max_bytes=max_bytes,
        processing_exception_handler=handler,
        **LIMITS,
    )
    draw = random.Random(seed)
    runs = runs_of(story(seed, 400), 7)
    plain, cutting = Partition(given_), Partition(given_)
    store = Store(cutting, draw, {})
    offsets, before = [], []
    for number, run in enumerate(runs):
        offsets.append(dict(plain._offsets))
        before.append(said(plain))
        store.step(number)
        plain.feed(*run)
        cutting.feed(*run)
        if number == len(runs) // 2 and store.last is None:
            store.finish(number + 1)
    assert_same(outcome(cutting), outcome(plain))
    assert store.last is not None
    at, digest = store.last
    again = restored(store, given_, offsets[at])
    assert again.task.digest() == digest
    second = Store(again, draw, store.units)
    for number, run in enumerate(runs[at:]):
        second.step(number)
        again.feed(*run)
    assert since(again, ({}, 0)) == since(plain, before[at])
    assert again.task.digest() == cutting.task.digest() == plain.task.digest()
    second.finish(len(runs))
    assert restored(second, given_, {}).task.digest() == plain.task.digest()
