"""Rounds of small runs, as at a low rate, in one group and one by one: µs of CPU per run, as JSON.

Their answers go to a producer whose broker is away: it accepts them, and its threads send nothing.

    python -m benchmarks.rounds                                   # 8 runs of about 21 records a round
    python -m benchmarks.rounds --partitions 16 --batch-bytes 1200

Both ways run in one process without a broker, in turns over the same bytes; docs/benchmarks-pipeline.md has
the results.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import statistics

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords

from benchmarks.rig.stages import GC_THRESHOLDS, Stopwatch, record_batches
from benchmarks.rig.stream import generate, model_keys
from streamapp.embedded.broker import free_port
from streamapp.settings import Settings
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.processing.pipeline import Pipeline, Results
from streamapp.worker.processing.run_groups import groups
from streamapp.worker.transport.fetched_columns import decode
from streamapp.worker.transport.runs import ReadAhead, Run
from topics.clients.sender import Sender
from topics.definitions import TopicNames
from topics.fetching.fetched_records import FetchedRecords

NAMES = TopicNames("grove.")
FETCH, PROCESS = "fetch and order", "read, process, encode"
SEND = "hand over, count"


class Partitions:
    """The tasks of a worker, and the record batches that it fetches for each task."""

    def __init__(self, batches: list[list[bytes]]) -> None:
        limits = OutputLimits.of_catalogue(NAMES)
        away = {"bootstrap.servers": f"127.0.0.1:{free_port()}", "log_level": 0}
        self.sender = Sender(away, native=True)
        self._pipeline = Pipeline(Settings(), self.sender, Metrics(), partitions=len(batches), limits=limits)
        self._tasks = [self._pipeline.new_task(number) for number in range(len(batches))]
        self._batches = batches
        self._positions = [0] * len(batches)

    async def round(self, number: int, watch: Stopwatch, together: bool) -> None:
        """Process the next run of each partition."""
        with watch.measure(FETCH):
            runs = [self._fetch(partition, own[number]) for partition, own in enumerate(self._batches)]
            made = groups(runs) if together else [[run] for run in runs]
        for group in made:
            work = [(self._tasks[run.raw.partition], run) for run in group]
            with watch.measure(PROCESS):
                outcomes = await self._pipeline.process(work, lambda _: True)
            results = [outcome for outcome in outcomes if isinstance(outcome, Results)]
            assert len(results) == len(outcomes)
            with watch.measure(SEND):
                self._pipeline.send(results)

    def _fetch(self, partition: int, batch: bytes) -> Run:
        topic, position = NAMES.instances, self._positions[partition]
        tp = TopicPartition(topic, partition)
        columns = decode(
            PartitionRecords(tp, FetchedRecords(batch), [], position, None, None, True, READ_COMMITTED), None
        )
        ahead = ReadAhead(topic, partition, position)
        ahead.add(columns)
        self._positions[partition] = columns.position
        return ahead.take(float("inf"), len(columns))


async def measure(batches: list[list[bytes]], rounds: int, turns: int) -> dict[bool, list[dict[str, float]]]:
    """Return, for both ways, µs of CPU per run by stage in each turn; a third of the rounds warms up."""
    seconds_by_stage: dict[bool, list[dict[str, float]]] = {True: [], False: []}
    for turn in range(2 * turns):
        together = turn % 2 == 0
        partitions, watch = Partitions(batches), Stopwatch()
        for number in range(rounds):
            if number == rounds // 3:
                watch.seconds.clear()
            await partitions.round(number, watch, together)
        partitions.sender.close()
        runs = (rounds - rounds // 3) * len(batches)
        seconds_by_stage[together].append({stage: s / runs * 1e6 for stage, s in watch.seconds.items()})
    return seconds_by_stage


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rounds", description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--keys", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--batch-bytes", type=int, default=3600, help="of the records of a run, about")
    options = parser.parse_args()
    # The broker is away on purpose.
    logging.getLogger("topics.clients.delivery_failures").setLevel(logging.ERROR)
    warm_kernels()
    n = options.rounds * options.partitions * options.batch_bytes // 100
    rows = generate(n, model_keys(options.keys, options.partitions))
    encoded = record_batches(rows, "json", options.partitions, options.batch_bytes)
    batches = [[batch for at, batch in encoded if at == partition] for partition in range(options.partitions)]
    rounds = min(options.rounds, *map(len, batches))
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    measured = asyncio.run(measure(batches, rounds, options.turns))
    for together, turns in measured.items():
        stages = {stage: round(statistics.median(turn[stage] for turn in turns), 1) for stage in turns[0]}
        all_ = round(statistics.median(sum(turn.values()) for turn in turns), 1)
        print(json.dumps({"together": together, "microseconds_per_run": all_, **stages}))
    ratios = [sum(a.values()) / sum(b.values()) for a, b in zip(measured[True], measured[False], strict=True)]
    print(json.dumps({"together_to_alone": [round(ratio, 2) for ratio in ratios]}))


if __name__ == "__main__":
    main()
