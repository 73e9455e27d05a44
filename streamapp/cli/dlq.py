"""`grove dlq`: records that are, or are to become, dead letters."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from streamapp.cli.help import help_of
from streamapp.cli.model_sources import installation_of
from streamapp.cli.options import Config, Json, Prefix, Servers, Set, settings_from

if TYPE_CHECKING:
    from streamapp.restore.skipping import Skippable

app = typer.Typer(help="Dead letters: put a record aside that stops its partition.", no_args_is_help=True)


def skip(
    place: Annotated[
        str,
        typer.Argument(
            help="The record, as the worker that stopped names it.",
            metavar="PARTITION:OFFSET",
            show_default=False,
        ),
    ],
    source: Annotated[
        Literal["instances", "labels", "controls"], typer.Option("--source", help="Topic of the record.")
    ] = "instances",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    config: Config = None,
    servers: Servers = None,
    prefix: Prefix = None,
    assignments: Set = None,
    as_json: Json = False,
) -> None:
    """Skip one record: it becomes a dead letter, unprocessed, and its partition goes on behind it.

    For a partition that is stopped by a record that our code cannot process. No worker may run meanwhile. The
    next one that gets the partition writes the dead letter (reason skipped), once, when it comes to the
    record; what is before and behind it is processed as ever.

    \b
    [bold]Examples[/bold]
      grove dlq skip 3:1234
      grove dlq skip 3:17 --source labels --yes
    """
    import json

    from streamapp.offline.place import Place
    from streamapp.restore.skipping import find
    from streamapp.restore.skipping import skip as write_skip

    wanted = Place.parse(place, "PARTITION:OFFSET", source)
    installation = installation_of(settings_from(config, servers, prefix, assignments))
    installation.check(wanted.partition)
    kafka, group, names = installation.kafka, installation.group, installation.names
    found = find(kafka, group, names, wanted.partition, source, wanted.offset)
    facts, lines = described(found)
    if not as_json:
        typer.echo("\n".join(lines))
    if not yes and not found.already:
        typer.confirm("The record becomes a dead letter, unprocessed. Go on?", abort=True, err=True)
    write_skip(kafka, group, names, found)
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
    else:
        again = " (that was said before)" if found.already else ""
        typer.echo(f"it becomes a dead letter when a worker comes to it{again}; start the workers")


def described(found: "Skippable") -> tuple[dict[str, Any], list[str]]:
    """What is known of a record, for programs and for people."""
    offset, ahead = found.skip.offset, found.skip.offset - found.next
    key = None if found.key is None else found.key.decode("utf-8", "replace")
    facts = {
        "topic": found.topic,
        "partition": found.partition,
        "offset": offset,
        "key": key,
        "bytes": found.size,
        "timestamp": found.timestamp,
        "next": found.next,
        "already": found.already,
    }
    size = "no value" if found.size is None else f"{found.size:,} bytes"
    where = f"{ahead:,} offsets before it" if ahead else "it is the next one"
    lines = [
        f"record     {found.topic} {found.partition}:{offset}, {size}, {_time(found.timestamp)}",
        f"key        {'none' if key is None else repr(key)}",
        f"position   {found.next:,}: {where}",
    ]
    return facts, lines


def _time(timestamp: int) -> str:
    from datetime import UTC, datetime

    if timestamp < 0:
        return "without a time"
    return f"of {datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(' ', 'milliseconds')}"


for command in (skip,):
    app.command(command.__name__, help=help_of(command))(command)
