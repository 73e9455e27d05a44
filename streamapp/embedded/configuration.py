"""The broker's configuration files: one KRaft node, loopback only, small internal topics."""

from pathlib import Path

N_INTERNAL_PARTITIONS = 4


def server_properties(data: Path, port: int, controller_port: int) -> str:
    """`server.properties` for a node that is broker and controller at once."""
    properties = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": data,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "auto.create.topics.enable": "false",
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": N_INTERNAL_PARTITIONS,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": N_INTERNAL_PARTITIONS,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": N_INTERNAL_PARTITIONS,
        # A single node waits for no other: groups start at once, and dead members may be found quickly.
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
