"""Worker processes of the broker tests, and what they read and write."""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
from confluent_kafka import Consumer, IsolationLevel, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    OffsetSpec,
    ResourceType,
)
from prometheus_client.parser import text_string_to_metric_families

from streamapp.embedded.broker import free_ports
from topics import admin
from topics.definitions import TopicNames

PATIENCE = 150  # seconds; no test is about speed, and the machine may be busy with other things
ECHO = "tests.broker.echo_worker"

UNHURRIED = {"GROVE_KAFKA_SESSION_TIMEOUT_MS": "150000", "GROVE_TRANSACTION_TIMEOUT_MS": "150000"}
"""For a worker that answers at least once and shall do so once: it is not given up because it gets no CPU."""


@dataclass
class Installation:
    """Topics with a prefix of their own, and the workers on them."""

    servers: str
    prefix: str
    partitions: int
    directory: Path
    settings: dict[str, str] = field(default_factory=dict)  # environment of every worker
    module: str = ECHO
    names: TopicNames = field(init=False)

    def __post_init__(self) -> None:
        self.prefix += f"{uuid.uuid4().hex[:8]}."  # a broker may outlive the tests
        self.names = TopicNames(self.prefix)
        if self.module.startswith("streamapp"):
            compile_kernels()
        admin.create({"bootstrap.servers": self.servers}, self.names, self.partitions, 1, PATIENCE)

    def members(self) -> set[str]:
        """The static names of the group's members, living or waited for."""
        client = AdminClient({"bootstrap.servers": self.servers})
        (described,) = client.describe_consumer_groups([self.group]).values()
        return {str(member.group_instance_id) for member in described.result(PATIENCE).members}

    @property
    def group(self) -> str:
        return self.prefix + "app"

    def worker(self, name: str, **settings: str) -> "WorkerProcess":
        environment = {
            "GROVE_KAFKA_BOOTSTRAP_SERVERS": self.servers,
            "GROVE_KAFKA_GROUP_INSTANCE_ID": name,
            "GROVE_APPLICATION_ID": self.group,
            "GROVE_TOPICS_PREFIX": self.prefix,
            "GROVE_STATE_DIR": str(self.directory / "state"),
            "GROVE_LOG_FORMAT": "text",
            "GROVE_WEB_PORT": str(free_ports(1)),
            **(UNHURRIED if self.module == ECHO else {}),
            **self.settings,
            **settings,
        }
        return WorkerProcess(self.module, environment, self.directory / f"{name}.log")

    def producer(self, **properties: Any) -> Producer:
        """A producer that keeps the order: without idempotence what is sent again comes too late.

        Its `poll` or `flush` raises when a record was not delivered.
        """
        kept = {"linger.ms": 5, "log_level": 0, "enable.idempotence": True}
        told = {"on_delivery": delivered, "delivery.report.only.error": True}
        return Producer({"bootstrap.servers": self.servers, **kept, **told, **properties})

    def lag(self) -> int:
        """Offsets of the sources that the group has not committed, markers and holes included."""
        sources = (self.names.instances, self.names.labels, self.names.controls)
        described = admin.describe({"bootstrap.servers": self.servers}, self.names, self.group, PATIENCE)
        lag = 0
        for topic in described:
            if topic.name in sources:
                assert len(topic.partitions) >= self.partitions, f"what is not told is no lag of 0: {topic}"
                for p in topic.partitions:
                    assert p.end is not None and p.start is not None, f"{topic.name}: {p}"
                    lag += p.end - p.start if p.lag is None else p.lag
        return lag

    def wait_for_lag_0(self, seconds: float = PATIENCE, alive: Sequence["WorkerProcess"] = ()) -> None:
        """Return when all is processed and can be read: offsets are committed a moment before outputs are."""

        def done() -> bool:
            for worker in alive:
                assert worker.code is None, worker.log
            return self.lag() == 0 and not self.open_transactions()

        wait_until(done, seconds, lambda: f"lag {self.lag()}\n" + "".join(worker.log for worker in alive))

    def open_transactions(self) -> set[str]:
        """The topics that have records of transactions which are not over."""
        client = AdminClient({"bootstrap.servers": self.servers})
        topics = client.list_topics(timeout=PATIENCE).topics
        wanted = {
            TopicPartition(name, number): OffsetSpec.latest()  # type: ignore[no-untyped-call]
            for name in self.names.all()
            if name in topics
            for number in topics[name].partitions
        }
        ends: list[dict[TopicPartition, int]] = []
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
            futures = client.list_offsets(wanted, isolation_level=level, request_timeout=PATIENCE)
            ends.append({place: future.result().offset for place, future in futures.items()})
        return {place.topic for place in wanted if ends[0][place] < ends[1][place]}

    def configure(self, topic: str, settings: dict[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        client = AdminClient({"bootstrap.servers": self.servers})
        for done in client.incremental_alter_configs([resource]).values():
            done.result(PATIENCE)

    def grow(self, topic: str, partitions: int) -> None:
        client = AdminClient({"bootstrap.servers": self.servers})
        for done in client.create_partitions([NewPartitions(topic, partitions)]).values():
            done.result(PATIENCE)

    def delete(self, *topics: str) -> None:
        client = AdminClient({"bootstrap.servers": self.servers})
        for done in client.delete_topics(list(topics), operation_timeout=PATIENCE).values():
            done.result(PATIENCE)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        client = AdminClient({"bootstrap.servers": self.servers})
        for done in client.delete_records([TopicPartition(topic, partition, offset)]).values():
            done.result(PATIENCE)

    def read(self, topic: str) -> list[dict[str, Any]]:
        """Everything on a topic as dicts, with `partition` and `key`, in log order per partition."""
        return [
            {"partition": message.partition(), "key": message.key(), **orjson.loads(message.value())}
            for message in self.raw(topic)
        ]

    def raw(self, topic: str) -> Iterator[Any]:
        """Every message of a topic (read_committed), in log order per partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        with contextlib.closing(consumer):
            consumer.assign([TopicPartition(topic, p, 0) for p in range(self.partitions)])
            ended = 0
            while ended < self.partitions:
                for message in consumer.consume(1000, 0.2):
                    error = message.error()
                    if error is not None:
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        ended += 1
                        continue
                    yield message


@functools.cache
def compile_kernels() -> None:
    """Once, before any worker starts: else those of a test would all compile, side by side."""
    subprocess.run([sys.executable, "-m", "streamapp", "warm"], check=True, stdout=subprocess.DEVNULL)


class WorkerProcess:
    """One worker as a child process; ends with the block."""

    def __init__(self, module: str, environment: dict[str, str], log: Path) -> None:
        self._module = module
        self.environment = environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.web = f"http://127.0.0.1:{environment['GROVE_WEB_PORT']}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self._module.split()],
                env={**os.environ, **self.environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def at(self, port: int) -> "WorkerProcess":
        """The pages of another process, that this one has started."""
        return WorkerProcess(self._module, {**self.environment, "GROVE_WEB_PORT": str(port)}, self._log)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def code(self) -> int | None:
        assert self._process is not None
        return self._process.poll()

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def page(self, path: str) -> tuple[int, str]:
        """Status and text; status 0 while nobody listens."""
        try:
            with urllib.request.urlopen(self.web + path, timeout=PATIENCE) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            return 0, str(error)

    def metric(self, name: str) -> float:
        """Sum of a metric over its labels."""
        lines = [
            line for line in self._metrics(name).splitlines() if line.startswith((name + " ", name + "{"))
        ]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def metric_of(self, name: str, **labels: str) -> float:
        """Value of the one metric with these labels; 0 if there is none."""
        for family in text_string_to_metric_families(self._metrics(name)):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return float(sample.value)
        return 0.0

    def _metrics(self, name: str) -> str:
        """The page of metrics; a page that does not come or lacks the metric is no zero."""
        status, text = self.page("/metrics")
        assert status == 200, text
        assert f"# TYPE {name.removesuffix('_count')} " in text
        return text

    @property
    def cpu_seconds(self) -> float:
        """What the process, which still runs, has computed up to now."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_until_ready(self) -> None:
        def ready() -> bool:
            assert self.code is None, self.log
            return self.page("/readyz")[0] == 200

        wait_until(ready, PATIENCE, lambda: self.log)

    def terminate(self, seconds: float = PATIENCE) -> int:
        self.signal()
        return self.wait(seconds)

    def signal(self, number: int = signal.SIGTERM) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, seconds: float = PATIENCE) -> int:
        """Exit code, as soon as it has ended."""
        assert self._process is not None
        return self._process.wait(seconds)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


def ms_ago(seconds: float) -> int:
    """A timestamp; one that is older than the topic's retention lets the broker delete it at any time."""
    return int((time.time() - seconds) * 1000)


def delivered(error: KafkaError | None, message: Message) -> None:
    """Refuse what was not: a test without its records shows nothing."""
    assert error is None, f"{message.topic()}: {error}"


def wait_until(done: Callable[[], bool], seconds: float, said: Callable[[], str], every: float = 0.1) -> None:
    """Ask a process or broker, which has no event to wait for, until it says so."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, said()
        time.sleep(every)
