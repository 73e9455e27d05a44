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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    OffsetSpec,
    ResourceType,
)
from prometheus_client.parser import text_string_to_metric_families

from streamapp.worker.reserved_ports import ReservedPorts, reserved_ports
from tests.broker.fork_server import ForkedProcess
from topics.clients import admin
from topics.clients.cluster import NOT_YET, Cluster, listed_offset
from topics.definitions import TopicNames
from topics.fetching.group_description import describe_group

PATIENCE = 150  # seconds; no test is about speed, and the machine may be busy with other things
ECHO = "tests.broker.echo_worker"
FORKED = (ECHO, "streamapp worker")
"""What is forked from a process that has imported it; a parent of workers is started as it is."""

UNHURRIED = {"GROVE_KAFKA_SESSION_TIMEOUT_MS": "150000", "GROVE_TRANSACTION_TIMEOUT_MS": "150000"}
"""For a worker that answers at least once and shall do so once, or whose counts are compared: it is not given
up because it gets no CPU."""


OF_THIS_TEST: list["Installation"] = []
"""Whose topics go when the test is over (`tests/conftest.py`): a broker's answers tell of all that it has."""


@dataclass
class Installation:
    """Topics with a prefix of their own, and the workers on them."""

    servers: str
    prefix: str
    partitions: int
    directory: Path
    settings: dict[str, str] = field(default_factory=dict)  # environment of every worker
    module: str = ECHO
    replication: int = 1
    names: TopicNames = field(init=False)
    _reserved: list[ReservedPorts] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.prefix += f"{uuid.uuid4().hex[:8]}."  # a broker may outlive the tests
        self.names = TopicNames(self.prefix)
        if self.module not in FORKED:
            compile_kernels()
        admin.create(
            {"bootstrap.servers": self.servers}, self.names, self.partitions, self.replication, PATIENCE
        )
        OF_THIS_TEST.append(self)

    def members(self) -> set[str]:
        """The static names of the group's members, living or waited for."""
        described = describe_group({"bootstrap.servers": self.servers}, self.group, PATIENCE)
        return {str(member.group_instance_id) for member in described.members}

    @property
    def group(self) -> str:
        return self.prefix + "app"

    def worker(self, name: str, *, fresh: bool = False, **settings: str) -> "WorkerProcess":
        """A worker that is not started yet; `fresh`: by its command line, and not forked."""
        self._reserved.append(reserved_ports(1))
        environment = {
            "GROVE_KAFKA_BOOTSTRAP_SERVERS": self.servers,
            "GROVE_KAFKA_GROUP_INSTANCE_ID": name,
            "GROVE_APPLICATION_ID": self.group,
            "GROVE_TOPICS_PREFIX": self.prefix,
            "GROVE_STATE_DIR": str(self.directory / "state"),
            "GROVE_LOG_FORMAT": "text",
            "GROVE_WEB_PORT": str(self._reserved[-1].first),
            **(UNHURRIED if self.module == ECHO else {}),
            **self.settings,
            **settings,
        }
        return WorkerProcess(self.module, environment, self.directory / f"{name}.log", fresh=fresh)

    def producer(self, **properties: Any) -> Producer:
        """A producer that keeps the order: without idempotence what is sent again comes too late.

        Its `poll` or `flush` raises when a record was not delivered.
        """
        kept = {"linger.ms": 5, "log_level": 0, "enable.idempotence": True}
        reports = {"on_delivery": delivered, "delivery.report.only.error": True}
        return Producer({"bootstrap.servers": self.servers, **kept, **reports, **properties})

    @functools.cached_property
    def cluster(self) -> Cluster:
        """The broker's administration, by one client for all questions of the test."""
        return Cluster({"bootstrap.servers": self.servers}, PATIENCE)

    @functools.cached_property
    def _committed(self) -> Consumer:
        """Who asks for the offsets of the group, without joining it.

        Those of a transaction that is still open (its worker may be dead) are not waited for.
        """
        given = {"group.id": self.group, "isolation.level": "read_uncommitted", "log_level": 0}
        return Consumer({"bootstrap.servers": self.servers, **given})

    def _places(self, names: Iterable[str]) -> list[TopicPartition]:
        topics = self.cluster.topics()
        return [TopicPartition(n, p) for n in names if n in topics for p in topics[n].partitions]

    def _offsets(
        self,
        places: list[TopicPartition],
        spec: OffsetSpec,
        level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, int]:
        """The offsets that leaders tell; a topic made a moment ago may have none yet that acts as one."""
        offset_of: dict[TopicPartition, int] = {}

        def told() -> bool:
            asked = {place: spec for place in places if place not in offset_of}
            futures = self.cluster.client.list_offsets(asked, isolation_level=level, request_timeout=PATIENCE)
            for place, future in futures.items():
                try:
                    offset_of[place] = listed_offset(future, PATIENCE)
                except KafkaException as failure:
                    if failure.args[0].code() not in NOT_YET:
                        raise
            return len(offset_of) == len(places)

        if places:
            wait_until(told, PATIENCE, lambda: f"{len(offset_of)} of {len(places)} leaders answered")
        return offset_of

    def _committed_offsets(self, places: list[TopicPartition]) -> list[TopicPartition]:
        """The positions of the group; who coordinates it changes while a broker begins."""
        answer: list[TopicPartition] = []

        def told() -> bool:
            try:
                answer[:] = self._committed.committed(places, timeout=PATIENCE)
            except KafkaException as failure:
                if failure.args[0].code() not in NOT_YET:
                    raise
            return bool(answer)

        wait_until(told, PATIENCE, lambda: "no coordinator")
        return answer

    def lag(self) -> int:
        """Offsets of the sources that the group has not committed, markers and holes included."""
        sources = (self.names.instances, self.names.labels, self.names.controls)
        places = self._places((*sources, self.names.feature_values))  # which an installation may not have
        assert len(places) >= self.partitions * len(sources), f"what is not told is no lag of 0: {places}"
        ends = self._offsets(places, OffsetSpec.latest())
        answer = self._committed_offsets(places)
        behind = {TopicPartition(p.topic, p.partition): p.offset for p in answer}
        never = [place for place, offset in behind.items() if offset < 0]
        behind |= self._offsets(never, OffsetSpec.earliest())
        return sum(ends[place] - behind[place] for place in places)

    def wait_for_lag_0(self, seconds: float = PATIENCE, alive: Sequence["WorkerProcess"] = ()) -> None:
        """Return when all is processed and can be read: offsets are committed a moment before outputs are."""

        def done() -> bool:
            for worker in alive:
                assert worker.code is None, worker.log
            return self.lag() == 0 and not self.open_transactions()

        wait_until(done, seconds, lambda: f"lag {self.lag()}\n" + "".join(worker.log for worker in alive))

    def open_transactions(self) -> set[str]:
        """The topics that have records of transactions which are not over."""
        places, latest = self._places(self.names.all()), OffsetSpec.latest()
        committed = self._offsets(places, latest, IsolationLevel.READ_COMMITTED)
        written = self._offsets(places, latest)
        return {place.topic for place in places if committed[place] < written[place]}

    def close(self) -> None:
        """Let the broker delete the topics, which it does by and by."""
        topics = self.cluster.topics()
        existing = [name for name in self.names.all() if name in topics]
        for done in (
            self.cluster.client.delete_topics(existing, operation_timeout=0).values() if existing else ()
        ):
            done.result(PATIENCE)
        if "_committed" in vars(self):
            self._committed.close()
        for ports in self._reserved:
            ports.release()

    def configure(self, topic: str, settings: dict[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for done in self.cluster.client.incremental_alter_configs([resource]).values():
            done.result(PATIENCE)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions, and return when the broker tells of their leaders."""
        client = self.cluster.client
        for answer in client.create_partitions([NewPartitions(topic, partitions)]).values():
            answer.result(PATIENCE)

        def done() -> bool:
            partitions_there = client.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
            return len(partitions_there) == partitions and all(
                partition.leader >= 0 for partition in partitions_there.values()
            )

        wait_until(done, PATIENCE, lambda: f"{topic} has not {partitions} partitions with leaders")

    def delete(self, *topics: str) -> None:
        for done in self.cluster.client.delete_topics(list(topics), operation_timeout=PATIENCE).values():
            done.result(PATIENCE)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Delete records; the broker allows it a moment after it has taken a policy that does."""

        def done() -> bool:
            request = [TopicPartition(topic, partition, offset)]
            try:
                for answer in self.cluster.client.delete_records(request).values():
                    answer.result(PATIENCE)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.POLICY_VIOLATION:
                    raise
                return False
            return True

        wait_until(done, PATIENCE, lambda: f"the policy of {topic} forbids it")

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
                "fetch.wait.max.ms": 10,  # else the broker holds the fetch that finds an end for 500 ms
                "log_level": 0,
            }
        )
        with contextlib.closing(consumer):
            consumer.assign([TopicPartition(topic, p, 0) for p in range(self.partitions)])
            ended = 0
            while ended < self.partitions:
                message = consumer.poll(PATIENCE)
                assert message is not None, f"{topic}: neither a record nor an end"
                error = message.error()
                if error is None:
                    yield message
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended += 1


@functools.cache
def compile_kernels() -> None:
    """Once, before any worker starts: else those of a test would all compile, side by side."""
    subprocess.run([sys.executable, "-m", "streamapp", "warm"], check=True, stdout=subprocess.DEVNULL)


class WorkerProcess:
    """One worker as a child process; ends with the block."""

    def __init__(self, module: str, environment: dict[str, str], log: Path, *, fresh: bool = False) -> None:
        self._module = module
        self.environment = environment
        self._log = log
        self._fresh = fresh or module not in FORKED
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
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
        words, environment = self._module.split(), {**os.environ, **self.environment}
        if not self._fresh:
            self._process = ForkedProcess(words, environment, self._log)
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *words], env=environment, stdout=log, stderr=subprocess.STDOUT
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


def grove(worker: WorkerProcess, *arguments: str) -> tuple[int, str]:
    """Run a command with the settings of a worker; exit code and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "streamapp", *arguments],
        env={**os.environ, **worker.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def wait_until(
    done: Callable[[], bool], seconds: float, in_words: Callable[[], str], every: float = 0.1
) -> None:
    """Ask a process or broker, which has no event to wait for, until it says so."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, in_words()
        time.sleep(every)
