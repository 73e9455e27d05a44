"""A burst of records that each add something is processed in steps, so that other partitions have their turn.

The work of a step is counted in calls of functions: on a busy machine, times differ from run to run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

import pytest

from streamapp.worker.task.task import TaskRun
from streamapp.worker.transport.runs import FetchedColumns, TimeOrder
from tests.topology.partition import ALWAYS, NOW, PARTITION, Partition, Record, config
from tests.topology.test_growth import KINDS, instance, label
from topics.columns.spans import RecordSpans

MOST: Final = 200_000
"""Calls of a step: a core makes more of them in 100 ms."""

BURST: Final = 1500

LONE: Final = "features of labelled records"
"""A label may decide something in most learners, so that later features may not come before it."""

MANY: Final[dict[str, tuple[Any, Any]]] = {
    "keys that begin with features of their own": (None, lambda n: instance({f"f{n}": 1}, key=f"k{n}")),
    "keys that begin with labels": (None, lambda n: label(n, features={"x": 1})._replace(key=b"k%d" % n)),
    "a feature of each model": (
        lambda n: instance({"x": 1}, key=f"k{n}"),
        lambda n: instance({"x": 1, f"y{n}": 2}, key=f"k{n}"),
    ),
    "a class of each model": (
        lambda n: instance({"x": 1}, key=f"k{n}"),
        lambda n: instance({"x": 1}, key=f"k{n}", label=f"c{n % 7}"),
    ),
    "a value of each model": (
        lambda n: instance({"c": "u"}, key=f"k{n}"),
        lambda n: instance({"c": f"v{n}"}, key=f"k{n}"),
    ),
    "fifty features each": (None, lambda n: instance({f"f{50 * n + at}": 1 for at in range(50)})),
    "ten values each": (None, lambda n: instance({f"c{at}": f"v{n}" for at in range(10)})),
}
"""Records before the burst, and its records."""

OTHERS: Final = ("hat", "arf", "ufft", "boct", "sgbt")

CASES: Final = [
    *(("h-tree", kind) for kind in (*KINDS, *MANY)),
    *((learner, kind) for learner in OTHERS for kind in (LONE, "nominal features")),
    *(("ufodt", kind) for kind in ("ids", "features beside known ones", "keys of wide models")),
    ("arf", "keys"),
    ("naive-bayes", LONE),
]


def steps(partition: Partition, records: list[Record]) -> Iterator[int]:
    """Process records as a worker does, after larger runs were cheap; yield the records of each step."""
    source, n = records[0].source, len(records)
    order = TimeOrder(PARTITION, [(source, 0)], skew_ms=0, max_idle_ms=-1, max_records=10_000)
    columns = [record.key for record in records], [record.value for record in records]
    spans = RecordSpans.of(range(n), [NOW] * n, *columns, [record.headers for record in records])
    order.add(source, FetchedColumns(spans, n, n))
    while run := order.next_run(0.0):
        leading = partition.task.leading(TaskRun(source, run.raw, position=run.position))
        done = len(leading.raw)
        if done < len(run.raw):
            run, rest = run.cut(done)
            order.give_back(rest, done)
        assert leading.position == run.position
        partition.process(leading)
        yield done


def begun(learner: str, before: Any, n: int) -> Partition:
    """Return a partition that has processed instances, a label and what precedes a burst."""
    partition = Partition(config(ALWAYS | {"learner": learner}))
    partition.feed(instance({"x": 1, "c": "v"}, id="first", label="a"))
    if before is not None:
        partition.feed(*map(before, range(n)))
    return partition


@pytest.mark.parametrize(("learner", "kind"), CASES, ids=["-".join(case) for case in CASES])
def test_no_step_of_a_burst_is_long(learner: str, kind: str) -> None:
    before, make = MANY.get(kind) or (None, KINDS[kind])
    records = [make(number) for number in range(BURST)]
    list(steps(begun(learner, before, 30), records[:30]))  # kernels are loaded
    partition, counted, done = begun(learner, before, BURST), 0, 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    burst = steps(partition, records)
    for _ in range(3):  # the first are the largest: later ones are told what these have done
        counted = 0
        sys.setprofile(count)
        try:
            done += next(burst, 0)
        finally:
            sys.setprofile(None)
        assert counted < MOST, f"{counted} calls up to record {done}"
    assert done > 3, "steps are worth their cost"


@pytest.mark.parametrize("kind", [LONE, "keys", "values of labelled records"])
@pytest.mark.parametrize("learner", ["hat", "arf"])
def test_steps_lead_to_what_one_run_leads_to(learner: str, kind: str) -> None:
    records = [KINDS[kind](number) for number in range(60)]
    whole, cut = begun(learner, None, 0), begun(learner, None, 0)
    whole.task.next["instances"] = cut.task.next["instances"] = 0
    whole._offsets["instances"] = 0
    whole.feed(*records)
    assert sum(steps(cut, records)) == len(records)
    assert cut.task.digest() == whole.task.digest()
    assert cut.counts == whole.counts
