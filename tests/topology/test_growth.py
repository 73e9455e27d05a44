"""What grows a model, or what a partition remembers, costs what it adds: four times as much, four times the
work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import orjson
import pytest

from tests.topology.partition import ALWAYS, NEVER, Partition, Record, config

N = 100
TIMES = 4
RUN = 200


def instance(features: Any, *, key: str = "m", headers: Any = (), **members: Any) -> Record:
    value = orjson.dumps({"features": features} | members)
    return Record("instances", key.encode(), value, headers=headers)


def label(number: int, **members: Any) -> Record:
    return Record("labels", b"m", orjson.dumps({"id": f"i{number}", "label": "a"} | members))


KINDS: dict[str, Callable[[int], Record]] = {
    "features": lambda n: instance({f"f{n}": 1}),
    "features beside known ones": lambda n: instance({"x": 1, f"f{n}": 1}),
    "features of labelled records": lambda n: instance({f"f{n}": n % 2}, label="ab"[n % 2]),
    "nominal features": lambda n: instance({f"f{n}": "word"}),
    "values": lambda n: instance({"c": f"v{n}"}),
    "values of labelled records": lambda n: instance({"c": f"v{n}"}, label="ab"[n % 2]),
    "classes": lambda n: instance({"x": 1}, label=f"c{n}"),
    "keys": lambda n: instance({"x": 1}, key=f"k{n}"),
    "keys of wide models": lambda n: instance([1] * 500, key=f"k{n}"),
    "headers": lambda n: instance({"x": 1}, headers=((f"h{n}", b"v"),)),
    "ids": lambda n: instance({"x": 1}, id=f"j{n}"),
    "early labels": lambda n: label(n),
    "annotators": lambda n: label(n, annotator=f"a{n}"),
    "features of labels": lambda n: label(n, features={"x": 1, f"f{n}": 1}),
    "values of labels": lambda n: label(n, features={"x": 1, "c": f"v{n}"}),
}


def calls(kind: str, n: int) -> int:
    """Return how many functions are called while a partition processes n records of a kind."""
    partition = Partition(config(ALWAYS))
    partition.feed(instance({"x": 1, "c": "v"}, id="first"))
    partition.feed(KINDS[kind](10**6))  # what is done once is done
    records = [KINDS[kind](number) for number in range(n)]
    return counted(partition, [records[start : start + RUN] for start in range(0, n, RUN)])


def counted(partition: Partition, runs: Sequence[Sequence[Record]]) -> int:
    """Return how many functions are called while a partition processes runs."""
    n_calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal n_calls
        n_calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for run in runs:
            partition.feed(*run)
    finally:
        sys.setprofile(None)
    return n_calls


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_new_costs_what_it_adds(kind: str) -> None:
    calls(kind, TIMES * N)  # kernels are loaded
    few, many = calls(kind, N), calls(kind, TIMES * N)
    assert many < 1.5 * TIMES * few, f"{few} calls of {N} records, {many} of {TIMES * N}"


def test_challenges_of_other_keys_cost_a_run_nothing() -> None:
    def calls_beside(n_challenged: int) -> int:
        partition = Partition(config(NEVER | {"learner": "majority-class"}))
        keys = [f"k{n}" for n in range(10 * N)]
        partition.feed(*(instance({"x": 1}, key=key) for key in (*keys, "m")))
        challenge = orjson.dumps({"command": "challenge", "spec": "no-change"})
        partition.feed(*(Record("controls", key.encode(), challenge) for key in keys[:n_challenged]))
        assert not partition.dead_letters
        return counted(partition, [[instance({"x": 1})._replace(at=1000 * at)] for at in range(1, 21)])

    calls_beside(1)  # kernels are loaded
    assert calls_beside(10 * N) < 1.2 * calls_beside(1)


def test_a_thousand_records_that_each_name_a_new_feature_are_answered() -> None:
    partition = Partition(config(ALWAYS, models_max_attributes=900))
    partition.feed(*(instance({f"f{n}": 1}) for n in range(1000)))
    assert partition.counts["instances.answered"] == 1000
    assert partition.task.models.traits.schema(0).n_attributes == 900
    assert partition.counts["features.ignored"] == 100
