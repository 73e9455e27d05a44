"""`grove dlq`: lists, shows, replays and makes dead letters."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamapp.cli.operating.model_sources import installation_of
from streamapp.cli.options import Json, SettingsOptions, Yes
from streamapp.cli.register import register
from streamapp.errors import UsageError
from streamapp.worker.task.sources import SourceName

if TYPE_CHECKING:
    from streamapp.tools.dead_letters.find import DeadLetterFilter, DeadLetterLog
    from streamapp.tools.dead_letters.skip import Skippable

app = typer.Typer(
    help="Dead letters: list them, send them back, skip a record that stops its partition.",
    no_args_is_help=True,
)

Reasons = Annotated[
    list[str] | None,
    typer.Option(
        "--reason", help="Only letters with this reason (docs/records.md); may be repeated.", metavar="REASON"
    ),
]
Key = Annotated[str | None, typer.Option("--key", help="Only letters with this model key.", metavar="KEY")]


def skip(
    options: SettingsOptions,
    place: Annotated[
        str,
        typer.Argument(
            help="The record's position, as in the message of the stopped worker.",
            metavar="PARTITION:OFFSET",
            show_default=False,
        ),
    ],
    source: Annotated[SourceName, typer.Option("--source", help="Topic of the record.")] = "instances",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Skip one record: it becomes a dead letter, unprocessed, and its partition goes on after it.

    Use it for a partition that is stopped by a record that our code cannot process. No worker may run at
    the same time. The next worker that gets the partition writes the dead letter (reason skipped), once,
    when it comes to the record; records before and after it are processed as usual.

    \b
    [bold]Examples[/bold]
      grove dlq skip 3:1234
      grove dlq skip 3:17 --source labels --yes
    """
    import json

    from streamapp.tools.dead_letters.skip import find
    from streamapp.tools.dead_letters.skip import skip as write_skip
    from streamapp.tools.offline.place import Place

    position = Place.parse(place, "PARTITION:OFFSET", source)
    installation = installation_of(options)
    installation.check(position.partition)
    kafka, group, names = installation.kafka, installation.group, installation.names
    record = find(kafka, group, names, position.partition, source, position.offset)
    facts, lines = described(record)
    if not as_json:
        typer.echo("\n".join(lines))
    if not yes and not record.already:
        typer.confirm("The record becomes a dead letter, unprocessed. Go on?", abort=True, err=True)
    write_skip(kafka, group, names, record)
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
    else:
        again = " (as in an earlier message)" if record.already else ""
        typer.echo(f"it becomes a dead letter when a worker comes to it{again}; start the workers")


def described(record: "Skippable") -> tuple[dict[str, Any], list[str]]:
    """The description of a record, for programs and for people."""
    offset, ahead = record.skip.offset, record.skip.offset - record.next
    key = None if record.key is None else record.key.decode("utf-8", "replace")
    facts = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": offset,
        "key": key,
        "bytes": record.size,
        "timestamp": record.timestamp,
        "next": record.next,
        "already": record.already,
    }
    size = "no value" if record.size is None else f"{record.size:,} bytes"
    where = f"{ahead:,} offsets before it" if ahead else "it is the next one"
    lines = [
        f"record     {record.topic} {record.partition}:{offset}, {size}, {_time(record.timestamp)}",
        f"key        {'none' if key is None else repr(key)}",
        f"position   {record.next:,}: {where}",
    ]
    return facts, lines


def _time(timestamp: int) -> str:
    from datetime import UTC, datetime

    if timestamp < 0:
        return "without a time"
    return f"of {datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(' ', 'milliseconds')}"


def list_(
    options: SettingsOptions,
    reasons: Reasons = None,
    key: Key = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", help="Number of letters, from the newest on.", metavar="N", min=1)
    ] = 100,
    as_json: Json = False,
) -> None:
    """List dead letters, oldest first: where they are, why, and where the record was.

    \b
    [bold]Examples[/bold]
      grove dlq list
      grove dlq list --reason wrong-schema --key user-17 --limit 1000 --json
    """
    import heapq
    import json

    from rich.console import Console
    from rich.table import Table

    from streamapp.cli.table_cells import cell
    from streamapp.tools.dead_letters.read import row_of

    log = _log(options)
    rows = (row_of(letter) for letter in log.read(_filter(reasons, key)))
    newest = heapq.nlargest(limit, rows, key=lambda row: (row["timestamp"], row["at"]))[::-1]
    if as_json:
        typer.echo(json.dumps(newest, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for title in ("at", "reason", "key", "record", "first seen", "attempts"):
        table.add_column(title, overflow="fold", justify="right" if title == "attempts" else "left")
    for row in newest:
        record = f"{row['topic']} {row['record']}"
        cells = row["at"], row["reason"], row["key"], record, _when(row["first_seen"]), row["attempts"]
        table.add_row(*(cell("" if value is None else str(value)) for value in cells))
    Console(highlight=False).print(table)


def show(
    options: SettingsOptions,
    place: Annotated[
        str,
        typer.Argument(
            help="Position of a dead letter, as in the list.", metavar="PARTITION:OFFSET", show_default=False
        ),
    ],
    as_json: Json = False,
) -> None:
    """Show a dead letter: what is wrong with it, the headers of its producer, its value.

    \b
    [bold]Examples[/bold]
      grove dlq show 3:17
    """
    import json

    from streamapp.tools.dead_letters.read import as_text, document_of
    from streamapp.tools.offline.place import Place

    position = Place.parse(place, "PARTITION:OFFSET", "dead-letters")
    letter = _log(options).one(position)
    document = document_of(letter)
    typer.echo(json.dumps(document, ensure_ascii=False) if as_json else as_text(document))


def replay(
    options: SettingsOptions,
    place: Annotated[
        str | None,
        typer.Argument(help="Only this dead letter.", metavar="[PARTITION:OFFSET]", show_default=False),
    ] = None,
    reasons: Reasons = None,
    key: Key = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the letters to be sent, and send none.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Send dead letters to their topics again, after the problem has been solved.

    Key, value and headers are the record's; a header with the number of attempts is added. If it is run
    twice, it sends the records twice. Records of which a part was processed already (bad-rows,
    output-too-large), and skipped records, are left out unless --reason names them.

    \b
    [bold]Examples[/bold]
      grove dlq replay --reason unknown-model --dry-run
      grove dlq replay --reason too-many-models --key user-17
      grove dlq replay 3:17 --yes
    """
    import json

    log = _log(options)
    selection = _filter(reasons, key, place)
    returned = log.send_back(selection, dry_run=True)
    if not (dry_run or yes) and returned.n:
        typer.confirm(f"{returned.n:,} records go to their topics again. Go on?", abort=True, err=True)
    if not dry_run and returned.n:
        returned = log.send_back(selection, dry_run=False)
    if as_json:
        typer.echo(
            json.dumps({"dry_run": dry_run, "sent": returned.sent, "left": returned.left}, ensure_ascii=False)
        )
        return
    for topic, n in sorted(returned.sent.items()):
        typer.echo(f"{'would go' if dry_run else 'sent'} to {topic}: {n:,}")
    for why, n in sorted(returned.left.items()):
        typer.echo(f"left out: {n:,}, {why}")
    if not returned.n and not returned.left:
        typer.echo("no dead letter matches; 'grove dlq list' shows all dead letters")


def _log(options: SettingsOptions) -> "DeadLetterLog":
    from streamapp.tools.dead_letters.find import DeadLetterLog

    settings, kafka, names = options.connection()
    return DeadLetterLog(kafka, f"{settings.application_id}-dlq", names)  # the group commits nothing


def _filter(reasons: list[str] | None, key: str | None, place: str | None = None) -> "DeadLetterFilter":
    from streamapp.tools.dead_letters.find import DeadLetterFilter
    from streamapp.tools.offline.place import Place
    from topics.errors import Reason

    names = [reason.value for reason in Reason]
    for reason in reasons or ():
        if reason not in names:
            message = f"--reason {reason}: there is none of that name; known: {', '.join(names)}"
            raise UsageError(message)
    at = None if place is None else Place.parse(place, "PARTITION:OFFSET", "dead-letters")
    return DeadLetterFilter(tuple(reasons or ()), key, at)


def _when(timestamp: int | None) -> str:
    return "" if timestamp is None else _time(timestamp).removeprefix("of ")


COMMANDS: dict[str, Callable[..., None]] = {"list": list_, "show": show, "replay": replay, "skip": skip}
for name, command in COMMANDS.items():
    register(app, command, name)
