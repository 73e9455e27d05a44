"""CPU of consuming: aiokafka's fetcher as the worker uses it, and librdkafka's batch queue by a kernel.

    python -m benchmarks.consumers --json                                 # 5,000/s, full rate, 8 partitions
    python -m benchmarks.consumers --partitions 8 64 --rate 5000 --seconds 10 --turns 3 --records 2000000

Each way is a separate process that reads one topic to columns (`topics/columns/spans.py:RecordSpans`), one
after the other, turn after turn. Its loop is the worker's loop between a fetch and a run: it waits for the
records that a thread takes.

fetcher: the worker's consumer thread (`streamapp/worker/driver/thread.py`) without Faust and without a group.
queue: `rd_kafka_consume_batch_queue`; a kernel copies keys and values and gives the messages back.
queue-held: the same; at the trickle the broker holds each answer for the pause between two fetches, as
for the worker.

Three loads: a trickle; its backlog in the same small batches, as fast as it goes; large batches likewise. CPU
is the time of all threads of the process, in microseconds, by record and by fetch; a quarter warms up.
`ratio` compares a way with the fetcher, the median of the turns. docs/benchmarks-pipeline.md has the results.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka import Producer
from faust.types import TP

from benchmarks.peers.job import LINGER_MS
from benchmarks.rig.broker import broker
from benchmarks.rig.consumed_messages import MessageQueue
from benchmarks.rig.process import Child, await_while_running, python
from benchmarks.rig.visible import Cluster
from streamapp.worker.app import FETCH
from streamapp.worker.driver.fetch_routine import FetchRoutine
from streamapp.worker.driver.pace import PACE_MAX_S
from streamapp.worker.driver.plain_answers import PlainAnswers
from streamapp.worker.driver.thread import ConsumerThread
from streamapp.worker.transport.fetch_sessions import FetchSessions
from streamapp.worker.transport.partition_health import PartitionHealth
from topics.fetching.fetched_records import keep_bytes

WAYS: Final = ("fetcher", "queue", "queue-held")
KEYS: Final = 64
LARGE_MS: Final = 50.0  # linger of the producer of the full rate: batches of some hundred records
WARM: Final = 0.25
"""Share of the records, or of the seconds, that is not counted."""
FIRST_SECONDS: Final = 300.0  # that a consumer may wait for its first record
MARGIN_SECONDS: Final = 20.0  # that records are produced beyond the measured time: a consumer may begin late
MOST: Final = 100_000
"""Messages that are read at once from a queue of librdkafka."""


class Taken(NamedTuple):
    """The counts of a consumer so far."""

    records: int
    fetches: int
    cpu: float
    at: float


class Way(Protocol):
    """A consumer of one topic."""

    fetches: int

    async def take(self) -> int:
        """Wait for records, and return how many came."""


class Fetcher:
    """The worker's consumer thread over an aiokafka consumer that is assigned partitions by hand."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self.fetches = options, 0
        self._positions: dict[TP, int] = {}
        keep_bytes()

    async def open(self) -> None:
        """Start the thread and its consumer."""
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._open(), self._loop))

    async def _open(self) -> None:
        options = self._options
        consumer = AIOKafkaConsumer(
            bootstrap_servers=options.bootstrap,
            enable_auto_commit=False,
            isolation_level="read_committed",
            fetch_min_bytes=int(FETCH["fetch.min.bytes"]),
            fetch_max_wait_ms=int(FETCH["fetch.max.wait.ms"]),
            fetch_max_bytes=int(FETCH["fetch.max.bytes"]),
            max_partition_fetch_bytes=int(FETCH["max.partition.fetch.bytes"]),
        )
        await consumer.start()
        places = [TopicPartition(options.topic, number) for number in range(options.partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        for place in places:
            self._positions[TP(*place)] = at = ends[place] if options.way_seconds else 0
            consumer.seek(place, at)
        fetcher: Any = consumer._fetcher
        FetchSessions(consumer._client, consumer._subscription)
        self._thread = _Thread(consumer, self._loop)
        fetcher._prefetch_backoff = 0.0
        PlainAnswers(consumer._client, fetcher)
        self._thread._plan_fetches(fetcher, {options.topic})
        self._thread.partition_health.limit_fetches(fetcher)
        FetchRoutine(fetcher)
        request = fetcher._proc_fetch_request

        async def counted(*arguments: Any) -> Any:
            self.fetches += 1
            return await request(*arguments)

        fetcher._proc_fetch_request = counted

    async def take(self) -> int:
        pace = PACE_MAX_S if self._options.way_seconds else 0.0
        fetched = await self._thread.take(self._positions, 1.0, pace_s=pace)
        for tp, columns in fetched.columns.items():
            self._positions[tp] = columns.position
        return fetched.records


class _Thread(ConsumerThread):
    """The consumer thread with the parts that fetching uses, and without Faust's service."""

    def __init__(self, consumer: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._opened, self.thread_loop = consumer, loop
        self.consumer: Any = SimpleNamespace(flow_active=True)
        self.partition_health = PartitionHealth(consumer._client)
        self.sources: Any = SimpleNamespace(suspects=False)

    def _ensure_consumer(self) -> Any:
        return self._opened


class Queue:
    """librdkafka's consumer, whose queue a thread reads."""

    def __init__(self, options: argparse.Namespace) -> None:
        pace_ms = round(PACE_MAX_S * 1000)
        holds = options.way == "queue-held" and options.way_seconds > 0
        properties = {
            "bootstrap.servers": options.bootstrap,
            "group.id": f"consumers-{uuid.uuid4().hex[:8]}",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": "read_committed",
            "check.crcs": True,
            "queued.min.messages": MOST,
            "fetch.wait.max.ms": pace_ms if holds else FETCH["fetch.max.wait.ms"],
            "fetch.min.bytes": 1 << 20 if holds else FETCH["fetch.min.bytes"],
            "fetch.max.bytes": FETCH["fetch.max.bytes"],
            "max.partition.fetch.bytes": FETCH["max.partition.fetch.bytes"],
            "statistics.interval.ms": 1000,
            "log_level": 0,
        }
        from_end = options.way_seconds > 0
        self._queue = MessageQueue(properties, options.topic, options.partitions, from_end, MOST)
        self._executor, self._pace_ms = ThreadPoolExecutor(1), pace_ms

    async def open(self) -> None:
        """Nothing is left to open."""

    @property
    def fetches(self) -> int:
        """Return the requests so far, as the newest statistics of the library have them."""
        self._queue.report()
        return self._queue.fetches

    async def take(self) -> int:
        loop = asyncio.get_running_loop()
        spans, _ = await loop.run_in_executor(self._executor, self._queue.consume, self._pace_ms)
        return len(spans)


async def follow(options: argparse.Namespace) -> dict[str, Any]:
    """Consume for some seconds, or up to a number of records; return counts and CPU after the warm-up."""
    way: Any = Fetcher(options) if options.way == "fetcher" else Queue(options)
    await way.open()
    print("ready", flush=True)
    records = rounds = 0
    start: Taken | None = None
    opened, began = time.monotonic(), 0.0
    while True:
        n = await way.take()
        records, rounds = records + n, rounds + bool(n)
        now = time.monotonic()
        began = began or now * bool(n)
        if not began:
            if now - opened > FIRST_SECONDS:
                message = f"no record came within {FIRST_SECONDS:.0f} s"
                raise TimeoutError(message)
            continue
        share = (now - began) / options.way_seconds if options.way_seconds else records / options.records
        if start is None and share >= WARM:
            start, rounds = Taken(records, way.fetches, time.process_time(), now), 0
        if share >= 1.0 and start is not None:
            end = Taken(records, way.fetches, time.process_time(), now)
            break
    cpu, n = end.cpu - start.cpu, end.records - start.records
    return {
        "records_per_second": round(n / (end.at - start.at)),
        "fetches_per_second": round((end.fetches - start.fetches) / (end.at - start.at), 1),
        "rounds_per_second": round(rounds / (end.at - start.at), 1),
        "us_per_record": round(cpu / n * 1e6, 3),
        "us_per_fetch": round(cpu / max(end.fetches - start.fetches, 1) * 1e6, 1),
        "cores": round(cpu / (end.at - start.at), 4),
    }


def measured(
    options: argparse.Namespace, place: dict[str, Any], *, seconds: float = 0.0, records: int = 0
) -> dict[str, dict[str, Any]]:
    """Return the figures of each way: medians over the turns, and ratios to the fetcher."""
    turns: list[dict[str, dict[str, Any]]] = []
    for _ in range(options.turns):
        turns.append({})
        for way in WAYS:
            words = ["--way", way, "--way-seconds", str(seconds), "--records", str(records)]
            words += [word for name, value in place.items() for word in (f"--{name}", str(value))]
            with subprocess.Popen(
                python("-m", "benchmarks.consumers", *words), stdout=subprocess.PIPE, text=True
            ) as child:
                assert child.stdout is not None
                child.stdout.readline()  # it is ready
                lasts = seconds + MARGIN_SECONDS
                with produced(place, options.rate, lasts) if seconds else nullcontext():
                    line = child.stdout.readline()
            if child.returncode:
                message = f"the process of {way!r} ended with exit code {child.returncode}"
                raise RuntimeError(message)
            turns[-1][way] = json.loads(line)
    return {
        way: {name: statistics.median(turn[way][name] for turn in turns) for name in turns[0][way]}
        | {
            "ratio": round(
                statistics.median(
                    turn[way]["us_per_record"] / turn[WAYS[0]]["us_per_record"] for turn in turns
                ),
                2,
            )
        }
        for way in WAYS
    }


@contextmanager
def produced(
    place: dict[str, Any], rate: int, seconds: float, linger_ms: float = LINGER_MS
) -> Iterator[Child]:
    """Let a process produce records for some seconds."""
    words = [word for name, value in place.items() for word in (f"--{name}", str(value))]
    words += ["--rate", str(rate), "--seconds", str(seconds), "--keys", str(KEYS)]
    words += ["--linger-ms", str(linger_ms)]
    with (
        TemporaryDirectory(prefix="grove-bench-") as folder,
        Child(python("-m", "benchmarks.rig.steady", *words), log := Path(folder) / "producer") as child,
    ):
        await_while_running(lambda: bool(log.read_bytes()), child)  # its start: all records are encoded
        yield child


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.consumers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--partitions", type=int, nargs="+", default=[8])
    parser.add_argument("--rate", type=int, default=5000, help="records a second of the trickle")
    parser.add_argument("--seconds", type=float, default=10.0, help="of the trickle, for each way and turn")
    parser.add_argument("--records", type=int, default=1_000_000, help="records that are read at full rate")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one object for each load")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)  # of a process of this program
    parser.add_argument("--way-seconds", type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--bootstrap", help=argparse.SUPPRESS)
    parser.add_argument("--topic", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        (options.partitions,) = options.partitions
        print(json.dumps(asyncio.run(follow(options))), flush=True)
        return
    with broker() as bootstrap:
        cluster = Cluster(bootstrap)
        for partitions in options.partitions:
            for load, figures in of_partitions(options, cluster, bootstrap, partitions):
                report(options.json, {"load": load, "partitions": partitions, "ways": figures})


def of_partitions(
    options: argparse.Namespace, cluster: Cluster, bootstrap: str, partitions: int
) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    """Yield the loads and their figures."""
    with a_topic(cluster, bootstrap, partitions) as place:
        yield f"{options.rate}/s", measured(options, place, seconds=options.seconds)
        there = sum(cluster.ends(place["topic"], partitions))
        yield "its backlog", measured(options, place, records=min(options.records, there))
    with a_topic(cluster, bootstrap, partitions) as place:
        with produced(place, max(options.records // 10, 1), 11.0, LARGE_MS) as producer:
            await_records(cluster, place["topic"], partitions, options.records, producer)
        yield "full rate", measured(options, place, records=options.records)


@contextmanager
def a_topic(cluster: Cluster, bootstrap: str, partitions: int) -> Iterator[dict[str, Any]]:
    """Create a topic, and delete it at the end."""
    topic = f"consumers-{uuid.uuid4().hex[:6]}"
    cluster.create(topic, partitions=partitions)
    try:
        make_one(bootstrap, topic)
        yield {"bootstrap": bootstrap, "topic": topic, "partitions": partitions}
    finally:
        cluster.delete(topic)


def make_one(bootstrap: str, topic: str) -> None:
    """Produce one record; a new broker may still refuse ids to producers, and this client waits for it."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    producer.produce(topic, b"{}")
    if producer.flush(60):
        message = f"{topic}: one record was not delivered"
        raise RuntimeError(message)


def await_records(cluster: Cluster, topic: str, partitions: int, n: int, producer: Child) -> None:
    """Return when the topic has n records."""
    deadline = time.monotonic() + 600.0
    while sum(cluster.ends(topic, partitions)) < n:
        producer.check()
        if time.monotonic() > deadline:
            message = f"{topic} has no {n} records yet"
            raise TimeoutError(message)
        time.sleep(0.2)


def report(as_json: bool, figures: dict[str, Any]) -> None:
    """Print the figures of one load."""
    if as_json:
        print(json.dumps(figures), flush=True)
        return
    for way, numbers in figures["ways"].items():
        print(f"{figures['load']:>10} {figures['partitions']:>3} partitions {way:>10}: {numbers}", flush=True)


if __name__ == "__main__":
    main()
