"""`grove broker`."""

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamapp.cli.options import Prefix

if TYPE_CHECKING:
    from streamapp.embedded import EmbeddedCluster

HEAP_MB = 512
LAST_PORT = 65_535


def broker(
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory", "-d", help="Folder of the data; default: a temporary folder.", metavar="DIR"
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            "--port", "-p", help="Loopback port of the first node; 0: free ports.", min=0, max=LAST_PORT
        ),
    ] = 9092,
    nodes: Annotated[
        int,
        typer.Option("--nodes", help="Nodes, an odd number; topics have up to 3 replicas.", min=1, max=9),
    ] = 1,
    heap_mb: Annotated[
        int | None,
        typer.Option(
            "--heap",
            help="Megabytes of Java heap of each node.  [default: 512, with several nodes 256]",
            min=128,
            max=65_536,
        ),
    ] = None,
    topics: Annotated[
        bool, typer.Option("--topics/--no-topics", help="Create the topics of the catalogue.")
    ] = False,
    partitions: Annotated[
        int, typer.Option("--partitions", help="Partitions of each topic, with --topics.", min=1)
    ] = 8,
    prefix: Prefix = None,
) -> None:
    """Run a real Apache Kafka on this machine, for trials; Ctrl-C ends it.

    It needs no installed Java: the jars (44 MB) are downloaded once into a cache per user, and Java comes
    with the package. It listens on 127.0.0.1 only and is not meant for production.

    \b
    [bold]Examples[/bold]
      grove broker
      grove broker --directory ./kafka-data --topics
      grove broker --port 0
      grove broker --nodes 3 --topics
    """
    from streamapp.cli.progress import say_on_stderr
    from streamapp.cli.signals import interrupted_by_terminate
    from streamapp.embedded import EmbeddedBroker, EmbeddedCluster
    from streamapp.embedded.broker_cluster import NODE_HEAP_MB, check_directory
    from streamapp.errors import EmbeddedBrokerError, UsageError

    if nodes % 2 == 0:
        message = f"--nodes {nodes} must be odd: the nodes decide by majority, so one less bears as much"
        raise UsageError(message)
    if port + nodes - 1 > LAST_PORT:
        message = (
            f"--port {port} must be at most {LAST_PORT - nodes + 1} with --nodes {nodes}, which use "
            "the ports that follow it; choose a lower one, or 0 for free ports"
        )
        raise UsageError(message)
    embedded: EmbeddedBroker | EmbeddedCluster
    if nodes == 1:
        if directory is not None:
            check_directory(directory, nodes)
        embedded = EmbeddedBroker(directory, port or None, heap_mb or HEAP_MB, tell=say_on_stderr)
    else:
        ports = range(port, port + nodes) if port else None
        embedded = EmbeddedCluster(nodes, directory, ports, heap_mb or NODE_HEAP_MB, tell=say_on_stderr)
    with interrupted_by_terminate(), embedded as running:
        typer.echo(f"Kafka is ready at {running.bootstrap_servers}  (Ctrl-C ends it)")
        typer.echo(f"  export GROVE_KAFKA_BOOTSTRAP_SERVERS={running.bootstrap_servers}")
        if isinstance(running, EmbeddedCluster):
            for number, node in running.nodes.items():
                kill = f"kill -9 -{node.process_group}"
                typer.echo(f"  node {number} at {node.bootstrap_servers}: `{kill}` ends it like a crash")
            typer.echo(f"  `kill -USR1 {os.getpid()}` starts nodes that have ended again")
            signal.signal(signal.SIGUSR1, lambda *_: _start_again(running))
        if topics:
            from topics.clients.admin import create
            from topics.definitions import DEFAULT_PREFIX, TopicNames

            kafka = {"bootstrap.servers": running.bootstrap_servers}
            create(kafka, TopicNames(prefix or DEFAULT_PREFIX), partitions, tell=say_on_stderr)
        try:
            status = running.wait()
        except KeyboardInterrupt:
            return
        message = f"the broker ended without a command, with status {status}: {running.last_words()}"
        raise EmbeddedBrokerError(message)


def _start_again(cluster: "EmbeddedCluster") -> None:
    """Start the nodes that have ended, in a thread: a signal must not wait for them."""
    from streamapp.cli.progress import say_on_stderr
    from streamapp.errors import EmbeddedBrokerError

    def start() -> None:
        try:
            cluster.start_again()
        except EmbeddedBrokerError as error:
            say_on_stderr(str(error))
        else:
            say_on_stderr("all nodes run")

    threading.Thread(target=start, name="starting nodes", daemon=True).start()
