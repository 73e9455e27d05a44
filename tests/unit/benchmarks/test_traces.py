"""What traces cost a round, counted: a worker without them has no call of theirs."""

import asyncio
import cProfile
import pstats
from collections.abc import Callable
from typing import Any

from benchmarks.rig.stages import Stopwatch
from benchmarks.rounds import Partitions, batches_of
from benchmarks.traces import traced
from streamapp.worker.processing.pipeline import Pipeline


def calls_in_telemetry(make: Callable[..., Pipeline], batches: list[list[bytes]]) -> int:
    partitions, profile = Partitions(batches, make), cProfile.Profile()

    async def rounds() -> None:
        for number in range(min(6, *map(len, batches))):
            await partitions.round(number, Stopwatch(), True)

    try:
        profile.runcall(asyncio.run, rounds())
    finally:
        partitions.sender.close()
    stats: dict[tuple[str, int, str], Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    places = ("/telemetry/", "/traced_pipeline.py", "/opentelemetry/")
    return sum(row[1] for (file, _, _), row in stats.items() if any(place in file for place in places))


def test_off_costs_nothing_and_what_is_not_sampled_costs_little() -> None:
    batches = batches_of(40, 4, 64, 1000)
    off, not_sampled, on = (
        calls_in_telemetry(make, batches) for make in (Pipeline, traced(sampled=False), traced(sampled=True))
    )
    assert off == 0
    assert 0 < not_sampled < on / 3
