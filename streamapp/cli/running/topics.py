"""`grove topics`: create, check, describe."""

from dataclasses import dataclass
from typing import Annotated

import typer

from streamapp.cli.options import Json, SettingsOptions
from streamapp.cli.progress import say_on_stderr
from streamapp.cli.register import register

app = typer.Typer(help="Create, check and describe the topics.", no_args_is_help=True)


@dataclass(frozen=True)
class TopicOptions:
    """Properties of topics, with the names of the settings."""

    topics_partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", help="Partitions of every topic.", metavar="N", min=1)
    ] = None
    topics_replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", "-r", help="Copies of every partition.", metavar="N", min=-1),
    ] = None


def create(
    options: SettingsOptions,
    layout: TopicOptions,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            help="Seconds to wait for the broker; default: 60, and 0.1 for each partition of each topic.",
            metavar="SECONDS",
            min=1,
        ),
    ] = None,
) -> None:
    """Create the topics that do not exist yet; existing topics are never changed.

    It ends when all topics can be used, and reports on standard error for which topics it waits. Called
    again, it continues where it stopped.

    \b
    [bold]Examples[/bold]
      grove topics create
      grove topics create --partitions 16 --replication-factor 3 -b kafka-1:9092
    """
    from topics.clients import admin

    settings, kafka, names = options.connection(**vars(layout))
    creation = admin.create(
        kafka,
        names,
        settings.topics_partitions,
        settings.topics_replication_factor,
        timeout,
        say_on_stderr,
    )
    for name in creation.created:
        typer.echo(f"created  {name}")
    for name in creation.existed:
        typer.echo(f"existed  {name}")


def check(options: SettingsOptions, layout: TopicOptions, as_json: Json = False) -> None:
    """List every difference between the cluster and the catalogue; exit with 1 if there is one.

    Partition counts are compared with each other, and with topics.partitions if that is set.

    \b
    [bold]Examples[/bold]
      grove topics check
      grove topics check --partitions 16 --json
    """
    import dataclasses
    import json

    from topics.clients import admin

    settings, kafka, names = options.connection(**vars(layout))
    # Defaults are not compared with a cluster, because no operator chose them.
    chosen = settings.model_fields_set
    differences = admin.check(
        kafka,
        names,
        settings.topics_partitions if "topics_partitions" in chosen else None,
        settings.topics_replication_factor if settings.topics_replication_factor > 0 else None,
    )
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(difference) for difference in differences]))
    else:
        for difference in differences:
            typer.echo(difference.message, err=True)
        if not differences:
            typer.echo("topics are in order")
    raise typer.Exit(1 if differences else 0)


def describe(options: SettingsOptions, as_json: Json = False) -> None:
    """Show partitions, cleanup, retention, offsets kept and lag of every topic, as they are on the cluster.

    \b
    [bold]Examples[/bold]
      grove topics describe
      grove topics describe --json
    """
    import dataclasses
    import json

    from rich.console import Console
    from rich.table import Table

    from streamapp.cli.table_cells import cell
    from topics.clients import admin

    settings, kafka, names = options.connection()
    descriptions = admin.describe(kafka, names, settings.application_id)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(topic) for topic in descriptions]))
        return
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column("topic", overflow="fold")
    for title in ("direction", "cleanup", "retention"):
        table.add_column(title, no_wrap=True)
    for title in ("partitions", "offsets", "lag"):
        table.add_column(title, justify="right", no_wrap=True)
    for topic in descriptions:
        lags = [partition.lag for partition in topic.partitions if partition.lag is not None]
        table.add_row(
            cell(topic.name),
            topic.direction,
            cell(topic.cleanup or ""),
            cell(topic.retention or ""),
            str(len(topic.partitions)) if topic.exists else "missing",
            f"{topic.offsets:,}" if topic.exists else "",
            f"{sum(lags):,}" if lags else "",
        )
    console = Console(highlight=False)
    console.print(table)
    for group, key in dict.fromkeys((topic.group, topic.key) for topic in descriptions):
        console.print(f"co-partition group {group}: equal partitions, key: {key}", style="dim")


for command in (create, check, describe):
    register(app, command)
