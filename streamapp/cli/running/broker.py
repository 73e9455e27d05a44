"""`grove broker`."""

from pathlib import Path
from typing import Annotated

import typer

from streamapp.cli.options import Prefix


def broker(
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory", "-d", help="Folder of the data; default: a temporary folder.", metavar="DIR"
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", "-p", help="Loopback port; 0: a free port.", min=0, max=65_535)
    ] = 9092,
    heap_mb: Annotated[
        int, typer.Option("--heap", help="Megabytes of Java heap.", min=128, max=65_536)
    ] = 512,
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
    """
    from streamapp.cli.progress import say_on_stderr
    from streamapp.cli.signals import interrupted_by_terminate
    from streamapp.embedded import EmbeddedBroker
    from streamapp.errors import EmbeddedBrokerError

    embedded = EmbeddedBroker(directory, port=port or None, heap_mb=heap_mb, tell=say_on_stderr)
    with interrupted_by_terminate(), embedded as running:
        typer.echo(f"Kafka is ready at {running.bootstrap_servers}  (Ctrl-C ends it)")
        typer.echo(f"  export GROVE_KAFKA_BOOTSTRAP_SERVERS={running.bootstrap_servers}")
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
