"""A run leaves no cycles: its memory is free when it ends, not only when Python looks for cycles.

A worker looks for cycles seldom, and a record in a cycle keeps the whole fetched response in memory.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.topology.partition import ALWAYS, QUICK, Partition, Record, config, instance, label

FEATURES: Final = {"x": 1.5, "y": 2}
CHALLENGER: Final[dict[str, Any]] = {"learner": "naive-bayes"}


def controls(partition: Partition) -> None:
    """Carry out every command, and refuse some."""
    partition.control("create", spec={"learner": QUICK}, schema={"attributes": [{"name": "x"}]})
    partition.control("create")
    partition.control("configure", spec={"query": "never"})
    partition.control("configure", spec={"query": "nothing"})
    partition.control("freeze")
    partition.control("freeze", frozen=False)
    partition.control("reset")
    for command in ("drop", "promote"):
        partition.control("challenge", spec=CHALLENGER)
        partition.control(command)
    partition.control("import", id="i", part=1, parts=2, crc=0, data="")
    partition.control("delete")
    partition.control("delete")


def instances(partition: Partition) -> None:
    """Answer and learn, and refuse some."""
    documents = ({"id": f"i{n}", "features": FEATURES, "label": "ab"[n % 2]} for n in range(60))
    partition.instances(*documents)
    partition.feed(
        instance({"features": FEATURES | {"unknown": 1}}),
        Record("instances", b"m", b"{not json"),
        Record("instances", None, b"{}"),
        instance({"features": {"x": "text"}}),
        instance({"features": FEATURES, "label": "a", "weight": -1}),
        instance({"id": "of-two", "features": FEATURES}, key="another"),
    )


def labels(partition: Partition) -> None:
    """Learn labels in time, twice, early and late, and refuse some."""
    partition.instances(*({"id": f"r{n}", "features": FEATURES} for n in range(20)))
    partition.labels(*({"id": f"r{n}", "label": "ab"[n % 2]} for n in range(18)))
    partition.feed(
        label({"id": "r1", "label": "b"}),
        label({"id": "early", "label": "a"}),
        label({"id": "r18", "label": None, "declined": True}),
        Record("labels", b"m", b"[]"),
    )
    partition.instances({"id": "early", "features": FEATURES})


@pytest.fixture(scope="module")
def garbage() -> dict[str, list[dict[str, int]]]:
    """Garbage of three turns of each work. They run in a new process, which has no threads of other tests."""
    command = [sys.executable, "-m", "tests.topology.test_garbage"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return] # the process below writes it


@pytest.mark.parametrize("work", ["controls", "instances", "labels"])
def test_a_run_leaves_no_cycles(garbage: dict[str, list[dict[str, int]]], work: str) -> None:
    # A run that compiles one more kernel leaves cycles of the compiler; a cycle of ours is left by every run.
    assert {} in garbage[work], min(garbage[work], key=len)


def garbage_of(work: Callable[[Partition], None]) -> list[Counter[str]]:
    """Return the garbage of three turns."""
    partition = Partition(config(ALWAYS))
    work(partition)  # compiles kernels and fills caches
    return [garbage_of_turn(lambda: work(partition)) for _ in range(3)]


def garbage_of_turn(turn: Callable[[], None]) -> Counter[str]:
    """Return how many objects of each type only a search for cycles can free after a turn."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        turn()
        gc.collect()
        return Counter(type(thing).__qualname__ for thing in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


if __name__ == "__main__":
    json.dump({work.__name__: garbage_of(work) for work in (controls, instances, labels)}, sys.stdout)
