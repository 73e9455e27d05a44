"""The broker's configuration files: KRaft nodes, loopback only, small internal topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

N_INTERNAL_PARTITIONS = 4
MOST_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class Membership:
    """The place of a node in a cluster.

    The nodes 1 to `len(controllers)` are brokers and controllers at once; a node after them is a broker only.
    Topics have a replica on up to three of the controllers' nodes, and one of them may be away.
    """

    node: int
    cluster: str
    """Identifier of the cluster, as in `meta.properties`."""
    ports: tuple[int, int]
    """Ports on which this node listens: for clients and brokers, and for controllers."""
    advertised: tuple[int, int]
    """Ports at which other processes reach this node; they differ from `ports` if a proxy lies between."""
    controllers: Sequence[int]
    """Port at which each controller is reached, the node's own included."""

    @property
    def replicas(self) -> int:
        return min(MOST_REPLICAS, len(self.controllers))

    @property
    def is_controller(self) -> bool:
        return self.node <= len(self.controllers)


def server_properties(data: Path, member: Membership) -> str:
    """`server.properties` of a node."""
    port, controller_port = member.ports
    advertised_port, advertised_controller = member.advertised
    voters = (f"{node}@127.0.0.1:{voter}" for node, voter in enumerate(member.controllers, 1))
    listeners = f"PLAINTEXT://127.0.0.1:{port}"
    advertised = f"PLAINTEXT://127.0.0.1:{advertised_port}"
    if member.is_controller:
        listeners += f",CONTROLLER://127.0.0.1:{controller_port}"
        advertised += f",CONTROLLER://127.0.0.1:{advertised_controller}"
    least = max(1, member.replicas - 1)
    properties = {
        "process.roles": "broker,controller" if member.is_controller else "broker",
        "node.id": member.node,
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": "CONTROLLER",
        "listeners": listeners,
        "advertised.listeners": advertised,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": data,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "auto.create.topics.enable": "false",
        "default.replication.factor": member.replicas,
        "min.insync.replicas": least,
        "offsets.topic.replication.factor": member.replicas,
        "offsets.topic.num.partitions": N_INTERNAL_PARTITIONS,
        "transaction.state.log.replication.factor": member.replicas,
        "transaction.state.log.min.isr": least,
        "transaction.state.log.num.partitions": N_INTERNAL_PARTITIONS,
        "share.coordinator.state.topic.replication.factor": member.replicas,
        "share.coordinator.state.topic.min.isr": least,
        "share.coordinator.state.topic.num.partitions": N_INTERNAL_PARTITIONS,
        # Groups start at once, and dead members may be found quickly.
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        # The cleaner's default buffer (128 MiB) is a quarter of the whole heap here.
        "log.cleaner.dedupe.buffer.size": 16 << 20,
    }
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def logging_properties(file: Path) -> str:
    """`log4j2.properties`: warnings and worse, into one file."""
    return (
        "appender.file.type=File\n"
        "appender.file.name=file\n"
        f"appender.file.fileName={file}\n"
        "appender.file.layout.type=PatternLayout\n"
        "appender.file.layout.pattern=%d{ISO8601} %-5p %c{1} %m%n\n"
        "rootLogger.level=warn\n"
        "rootLogger.appenderRef.file.ref=file\n"
    )
