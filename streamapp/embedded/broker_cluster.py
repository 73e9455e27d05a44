"""Embedded cluster: several Kafka nodes, which are started, stopped and killed one by one."""

from __future__ import annotations

import math
import queue
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from streamapp.embedded.broker import EmbeddedBroker, new_cluster
from streamapp.embedded.configuration import Membership
from streamapp.embedded.jars import fetch_jars
from streamapp.embedded.java_server import POLL_SECONDS, StartedServer
from streamapp.errors import EmbeddedBrokerError
from streamapp.worker.reserved_ports import HOST, free_ports
from topics.fetching.group_description import describe_group
from topics.patience import Patience

if TYPE_CHECKING:
    from confluent_kafka.admin import ClusterMetadata

Answer = TypeVar("Answer")

MOST_NODES: Final = 9
NODES_FILE: Final = "nodes"
"""A file in the cluster's directory with the number of its nodes."""
NODE_HEAP_MB: Final = 256
ANSWER_S: Final = 30.0


class EmbeddedCluster(StartedServer):
    """Nodes that are brokers and controllers at once, on loopback ports; topics have up to three replicas.

    `with EmbeddedCluster(3) as cluster: cluster.bootstrap_servers`. With three replicas, one node may be away
    (`min.insync.replicas=2`). The data of node N lie in the folder `N` of `directory`.
    """

    def __init__(
        self,
        nodes: int,
        directory: Path | None = None,
        ports: Sequence[int] | None = None,
        heap_mb: int = NODE_HEAP_MB,
        *,
        brief: bool = False,
        tell: Callable[[str], object] = lambda _: None,
        through: Callable[[int, tuple[int, int]], tuple[int, int]] | None = None,
    ) -> None:
        """Reserve the ports; no process is started yet.

        `ports`: the clients' port of each node, default: free ones. `heap_mb` and `brief` are those of each
        node (`EmbeddedBroker`), `tell` gets a line every few seconds while nodes start. `through` gets the
        number of a node and its ports for clients and controllers, and returns the ports at which clients and
        other nodes shall reach it, such as those of a proxy.
        """
        self._temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="grove-cluster-")) if directory is None else directory
        self._tell = tell
        self._ended = 1
        self._ends = queue.SimpleQueue[tuple[int, int]]()
        check_directory(self.directory, nodes)
        listens = _ports(nodes, ports)
        reached = [(through or _directly)(node, pair) for node, pair in enumerate(listens, 1)]
        controllers = [controller for _, controller in reached]
        cluster = _known_cluster(self.directory) or new_cluster()
        self._addresses = [f"{HOST}:{port}" for port, _ in reached]
        self.nodes: dict[int, EmbeddedBroker] = {
            node: EmbeddedBroker(
                self.directory / str(node),
                heap_mb=heap_mb,
                brief=brief,
                tell=tell,
                member=Membership(node, cluster, pair, reached[node - 1], controllers),
                remove=self.directory if self._temporary else None,
            )
            for node, pair in enumerate(listens, 1)
        }

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every node, separated by commas."""
        return ",".join(self._addresses)

    def start(self, *nodes: int) -> None:
        """Start some nodes side by side, default: all; return when they answer and have all their replicas.

        A majority has to run, or it never returns: nodes wait for each other. If one of them cannot start,
        the others are ended, and its error is raised.
        """
        fetch_jars()  # once, with one progress bar
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / NODES_FILE).write_text(str(len(self.nodes)), encoding="ascii")
        started = nodes or tuple(self.nodes)
        with ThreadPoolExecutor(len(started)) as pool:
            starts = [pool.submit(self.nodes[node].start) for node in started]
            ended, running = wait(starts, return_when=FIRST_EXCEPTION)
            errors = [error for start in starts if start in ended and (error := start.exception())]
            while errors and running:  # a node may launch its process after it was ended
                for node in started:
                    self.nodes[node].stop(kill=True)
                _, running = wait(running, timeout=POLL_SECONDS)
            if errors:
                raise errors[0]
        self.wait_until_in_sync(started)

    def stop(self, *nodes: int, kill: bool = False) -> None:
        """End some nodes side by side, default: all; `kill`: at once, like a crash."""
        stopped = nodes or tuple(self.nodes)
        with ThreadPoolExecutor(len(stopped)) as pool:
            for stop in [pool.submit(self.nodes[node].stop, kill) for node in stopped]:
                stop.result()

    def restart_one_by_one(self, before: Callable[[int], object] = lambda _: None) -> None:
        """Stop and start each node in order; the next one follows when all replicas are in sync again.

        `before` is called with the number of each node before it stops.
        """
        for node in self.nodes:
            before(node)
            self.stop(node)
            self.start(node)

    def wait_until_in_sync(self, nodes: Iterable[int]) -> None:
        """Return when these nodes are in the cluster and all their replicas are in sync."""
        patience = Patience(math.inf, self._tell)
        while missing := self._missing(set(nodes)):
            for node in nodes:
                if not self.nodes[node].running:
                    message = f"node {node} ended while starting: {self.nodes[node].last_words()}"
                    raise EmbeddedBrokerError(message)
            patience.pause(missing)

    def _missing(self, nodes: set[int]) -> str:
        """Return a few words about a node or replica that is not there yet; empty if all are."""
        metadata = self.metadata()
        if away := nodes - metadata.brokers.keys():
            return f"node {min(away)} is not in the cluster yet"
        for name, topic in metadata.topics.items():
            for number, partition in topic.partitions.items():
                if late := nodes & (set(partition.replicas) - set(partition.isrs)):
                    return f"{name}-{number}: the replica of node {min(late)} is not in sync yet"
        return ""

    def leader(self, topic: str, partition: int) -> int:
        """Number of the node that leads a partition; -1: none does."""
        return int(self.metadata(topic).topics[topic].partitions[partition].leader)

    def coordinator(self, group: str) -> int:
        """Number of the node that coordinates a consumer group."""
        kafka = {"bootstrap.servers": self.bootstrap_servers}
        return self._answer(lambda: describe_group(kafka, group, ANSWER_S).coordinator)

    def metadata(self, topic: str | None = None) -> ClusterMetadata:
        """Brokers and topics, as a node that runs reports them."""
        from confluent_kafka.admin import AdminClient

        names = [] if topic is None else [topic]
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        return self._answer(lambda: client.list_topics(*names, timeout=ANSWER_S))

    def _answer(self, ask: Callable[[], Answer]) -> Answer:
        """Return an answer of the cluster, whose nodes come and go: the question is repeated until then."""
        from confluent_kafka import KafkaException

        patience = Patience(math.inf, self._tell)
        while True:
            try:
                return ask()
            except KafkaException as failure:
                patience.pause(f"no node answers: {failure.args[0].str()}")

    def start_again(self) -> None:
        """Start the nodes that have ended, such as those that were killed; return when all are in sync."""
        ended = [number for number, node in self.nodes.items() if not node.running]
        if ended:
            self.stop(*ended)  # gives back their locks
            self.start(*ended)
            self._watch(ended)

    def wait(self) -> int:
        """Block until no majority of the nodes runs; return the exit status of the last one that ended."""
        self._watch(self.nodes)
        while True:
            node, status = self._ends.get()
            self._ended = node
            if sum(node.running for node in self.nodes.values()) <= len(self.nodes) // 2:
                return status
            self._tell(f"node {node} ended with status {status}; the other nodes go on")

    def _watch(self, nodes: Iterable[int]) -> None:
        def watch(node: int) -> None:
            self._ends.put((node, self.nodes[node].wait()))

        for node in nodes:
            threading.Thread(target=watch, args=(node,), name=f"node {node}", daemon=True).start()

    def last_words(self) -> str:
        """The last error line in the log of the node that ended last."""
        return f"node {self._ended}: {self.nodes[self._ended].last_words()}"

    def close(self) -> None:
        """Stop, and remove the data if they lie in a temporary directory."""
        try:
            self.stop(kill=self._temporary)
        finally:
            for node in self.nodes.values():
                node.close()
            if self._temporary:
                shutil.rmtree(self.directory, ignore_errors=True)


def _ports(nodes: int, ports: Sequence[int] | None) -> list[tuple[int, int]]:
    """Return the ports of each node: for clients, and for controllers."""
    if ports is None:
        first = free_ports(2 * nodes)
        return [(port, port + 1) for port in range(first, first + 2 * nodes, 2)]
    first = free_ports(nodes)
    return [(port, first + at) for at, port in enumerate(ports)]


def _directly(_: int, ports: tuple[int, int]) -> tuple[int, int]:
    return ports


def check_directory(directory: Path, nodes: int) -> None:
    """Raise EmbeddedBrokerError if a folder has the data of another number of nodes.

    Some nodes may have no data yet, because the first start of the cluster failed.
    """
    noted = directory / NODES_FILE
    present = len(_folders(directory))
    if present and noted.exists():
        present = int(noted.read_text(encoding="ascii"))
    if _identity(directory).exists():
        present = 1
    if present not in (0, nodes):
        message = (
            f"{directory} has the data of --nodes {present}, not of --nodes {nodes}: give that number, or "
            "another directory"
        )
        raise EmbeddedBrokerError(message)


def _known_cluster(directory: Path) -> str:
    """Return the identifier of the cluster whose data a folder has; empty if it has none."""
    lines = [
        line
        for node in _folders(directory)
        for line in _identity(node).read_text(encoding="utf-8").splitlines()
    ]
    return next((line.partition("=")[2] for line in lines if line.startswith("cluster.id=")), "")


def _folders(directory: Path) -> list[Path]:
    """Return the folders of the nodes that have data."""
    nodes = (directory / str(number) for number in range(1, MOST_NODES + 1))
    return [node for node in nodes if _identity(node).exists()]


def _identity(node: Path) -> Path:
    return node / "data" / "meta.properties"
