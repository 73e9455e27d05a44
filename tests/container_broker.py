"""The broker of `--broker container`: the image that production uses, with what one node alone needs."""

from types import TracebackType
from typing import Any, Self

import pytest

from streamapp.worker.reserved_ports import reserved_ports
from tests.broker.workers import PATIENCE
from topics.clients.cluster import Cluster
from topics.errors import BrokerError

IMAGE = "apache/kafka:4.4.0"
PORT = 9092
REMEDY = "leave --broker out for an embedded broker, or name one: GROVE_KAFKA_BOOTSTRAP_SERVERS"


def environment(port: int) -> dict[str, str]:
    """Return the settings of one node that is broker and controller, reached at a port of this machine.

    Without those of the transactions' state no transaction can begin, and nothing be committed exactly once.
    """
    return {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENERS": f"PLAINTEXT://:{PORT},CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS": "4",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS": "1000",
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
    }


def check_docker() -> None:
    """Refuse to begin where no container can be started: who asks for one wants no test skipped."""
    try:
        import docker
        import testcontainers.core.container  # noqa: F401
    except ImportError as error:
        message = f"--broker container needs the extra dev ({error}); {REMEDY}"
        raise pytest.UsageError(message) from None
    try:
        docker.from_env().ping()
    except docker.errors.DockerException as error:
        message = f"--broker container needs a Docker engine that answers ({error}); {REMEDY}"
        raise pytest.UsageError(message) from None


class ContainerBroker:
    """Kafka in a container, on a port of the loopback that is known before it starts: it advertises it."""

    def __init__(self) -> None:
        from testcontainers.core.container import DockerContainer

        self._reserved = reserved_ports(1)
        self._port = self._reserved.first
        self._container: Any = DockerContainer(IMAGE).with_envs(**environment(self._port))
        self._container.ports[f"{PORT}/tcp"] = ("127.0.0.1", self._port)

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._reserved.release()  # whether Docker takes a reserved port depends on its version
        self._container.start()
        try:
            Cluster({"bootstrap.servers": self.bootstrap_servers}, PATIENCE).topics()
        except BrokerError as error:
            log = self._container.get_logs()
            self._container.stop()
            message = f"{IMAGE} does not answer; its last words: {b''.join(log)[-1000:]!r}"
            raise BrokerError(message) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._container.stop()
