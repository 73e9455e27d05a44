"""`grove journal`: shows records of a journal."""

from typing import Annotated

import typer

from streamapp.cli.options import Json, OnePartition, SettingsOptions
from streamapp.cli.register import register
from streamapp.errors import UsageError

app = typer.Typer(help="Read the journal: the records of each commit, snapshots.", no_args_is_help=True)


def show(
    options: SettingsOptions,
    partition: OnePartition,
    last: Annotated[
        int, typer.Option("--last", "-n", help="Number of offsets back from the end.", metavar="N", min=1)
    ] = 100,
    as_json: Json = False,
) -> None:
    """Show the newest records of a partition's journal, oldest first.

    \b
    [bold]Examples[/bold]
      grove journal show --partition 3
      grove journal show --partition 3 --last 100000 --json
    """
    import json

    from streamapp.worker.journal.entry import decode
    from streamapp.worker.journal.record_lines import as_json as body_of
    from streamapp.worker.journal.record_lines import as_text
    from streamapp.worker.restore.log_reader import LogReader
    from topics.clients.cluster import Cluster

    settings, kafka, names = options.connection()
    topic = names.journal
    count = Cluster(kafka).partition_count(topic)
    if partition >= count:
        message = f"--partition {partition} must be below {count}, the partitions of {topic}"
        raise UsageError(message)
    group = f"{settings.application_id}-journal-show"  # commits nothing
    with LogReader(kafka, group, lambda: False) as reader:
        first, end = reader.of(topic, partition).range()
        reader.open(topic, partition, max(first, end - last))
        for raw in reader.to_end():
            for offset, value in zip(raw.offsets, raw.values, strict=True):
                body = body_of(partition, offset, decode(value or b"", topic, partition))
                typer.echo(json.dumps(body) if as_json else as_text(body))


register(app, show)
