"""`grove models`: the models of a cluster; only import, restore and reset change anything."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from streamapp.cli.operating.model_sources import given_up, installation_of, model_of, say, where
from streamapp.cli.options import Json, OnePartition, SettingsOptions, Yes
from streamapp.cli.register import register
from streamapp.errors import UsageError
from streamapp.tools.model_files.model_origins import checked, read_file, taken_from, write_file

app = typer.Typer(
    help="Look at models, move them between clusters, look at their earlier states.",
    no_args_is_help=True,
)

Key = Annotated[str, typer.Argument(help="Model key.", metavar="KEY", show_default=False)]
Partition = Annotated[
    int | None, typer.Option("--partition", "-p", help="Only this partition.", metavar="N", min=0)
]
Model = Annotated[
    str, typer.Argument(help="Exported file, or model key.", metavar="FILE|KEY", show_default=False)
]


LEFT = ("spec", "frozen", "challenger")
"""Columns of `grove models list` whose cells are words: they begin at the left."""


def list_(options: SettingsOptions, partition: Partition = None, as_json: Json = False) -> None:
    """List the models as they are at the committed offsets.

    The state is read from snapshots and journal, as by a worker that gets the partition; workers need not
    run, and are not disturbed.

    \b
    [bold]Examples[/bold]
      grove models list
      grove models list --partition 3 --json
    """
    import json

    from rich.console import Console
    from rich.table import Table

    from streamapp.cli.progress import rows_progress
    from streamapp.cli.table_cells import cell
    from streamapp.tools.offline.listing import COLUMNS, rows

    place = installation_of(options)
    numbers = range(place.partitions) if partition is None else [partition]
    listed: list[dict[str, Any]] = []
    with rows_progress("partitions", len(numbers)) as advance:
        for number in numbers:
            with place.partition(number) as stored:
                arrived = stored.now()
            if arrived is not None:
                listed += rows(arrived.task)
            advance(1)
    if as_json:
        typer.echo(json.dumps(listed, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for title in COLUMNS:
        if title == "key":
            table.add_column(title, overflow="fold")
        else:
            table.add_column(title, justify="left" if title in LEFT else "right", no_wrap=True)
    for row in listed:
        table.add_row(*(cell(_cell(value)) for value in row.values()))
    Console(highlight=False).print(table)


def show(
    options: SettingsOptions,
    key: Key,
    depth: Annotated[int, typer.Option("--depth", "-d", help="Levels of the tree.", min=0)] = 3,
    as_json: Json = False,
) -> None:
    """Show a model as it is at the committed offsets: spec, counts, measures, curve, challenger, tree.

    \b
    [bold]Examples[/bold]
      grove models show user-17
      grove models show user-17 --json
    """
    import json

    from core import export as forms
    from streamapp.tools.inspection.model_answers import (
        challenge_lines,
        curve_lines,
        learned,
        measure_lines,
        measured,
    )
    from streamapp.worker.task.models.files.exported import read_exported

    exported = read_exported(taken_from(installation_of(options), key))
    if as_json:
        facts = {"key": key, "taken": exported.taken, "frozen": exported.frozen}
        facts["measures"] = measured(exported.model)
        facts["curve"] = learned(exported.model)
        facts["challenge"] = exported.challenge
        typer.echo(json.dumps(facts | forms.to_document(exported.model), ensure_ascii=False))
        return
    say(exported)
    model = exported.model
    for line in (
        *measure_lines(measured(model)),
        *curve_lines(learned(model)),
        *challenge_lines(exported.challenge),
    ):
        typer.echo(line)
    typer.echo(forms.to_text(exported.model, depth), nl=False)


def export(
    options: SettingsOptions,
    key: Key,
    to: Annotated[Path, typer.Option("--to", help="File to write.", metavar="FILE")],
) -> None:
    """Write a model, as it is at the committed offsets, to a file (docs/portable-models.md).

    The file is for 'grove models import', 'grove tree' and, in Python, core.Model.load.

    \b
    [bold]Examples[/bold]
      grove models export user-17 --to user-17.grove
    """
    from streamapp.worker.task.models.files.exported import read_exported

    place = installation_of(options)
    data = taken_from(place, key)
    write_file(to, data)
    exported = read_exported(data)
    typer.echo(
        f"{to}: {len(data):,} bytes, {exported.model.summary().labels:,} labels, taken at {where(exported)}"
    )


def import_(
    options: SettingsOptions,
    file: Annotated[Path, typer.Argument(help="Exported model.", metavar="FILE", show_default=False)],
    key: Annotated[
        str | None, typer.Option("--key", help="Key of the model here; default: its key in the file.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the model that has the key.")] = False,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait for the workers.", min=0)] = 60.0,
) -> None:
    """Import a model: it goes on answering and learning under a key, in this cluster or another cluster.

    It is sent as control records and is in effect once a worker has read the last one. If a worker runs,
    the command waits for that.

    \b
    [bold]Examples[/bold]
      grove models import user-17.grove --key user-18
      grove models import user-17.grove --replace -b other-cluster:9092
    """
    from streamapp.tools.model_files.send import Importer

    settings, kafka, names = options.connection()
    data = read_file(file)
    had = checked(file, data).key
    new_key = had if key is None else key
    if not new_key:
        message = "--key must have at least one character; name the key that the model is to have"
        raise UsageError(message)
    importer = Importer(kafka, settings.application_id, names)
    sent = importer.send(new_key, data, replace=replace)
    last = f"{names.controls} {sent.partition}:{sent.last}"
    if importer.wait(sent, wait):
        typer.echo(f"in effect: the model of {new_key!r}, as of {last}")
    else:
        typer.echo(f"sent in {sent.parts} parts; no worker runs: in effect once one has read {last}")


def diff(options: SettingsOptions, first: Model, second: Model, as_json: Json = False) -> None:
    """Print the differences between two models: spec, schema, counts, the first node with another test.

    The exit code is 1 if there is a difference. A name that is not a file is a model key.

    \b
    [bold]Examples[/bold]
      grove models diff yesterday.grove user-17
    """
    import json

    from streamapp.tools.offline.model_differences import differences

    differing = differences(*(model_of(options, name).model for name in (first, second)))
    if as_json:
        typer.echo(json.dumps([difference._asdict() for difference in differing], ensure_ascii=False))
    else:
        for difference in differing:
            typer.echo(str(difference))
        if not differing:
            typer.echo("no difference in spec, schema, counts and tests")
    raise typer.Exit(1 if differing else 0)


def rebuild(
    options: SettingsOptions,
    key: Annotated[str, typer.Option("--key", help="Model key.", show_default=False)],
    at: Annotated[
        str,
        typer.Option(
            "--at",
            help="Position in the topic instances; an id that the worker made is one.",
            metavar="PARTITION:OFFSET",
            show_default=False,
        ),
    ],
    after: Annotated[bool, typer.Option("--after", help="The state right after that record.")] = False,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write the model to this file.", metavar="FILE")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rebuild a model as it was when it answered a record, and explain that answer.

    The model is rebuilt from the snapshot before the record and the journal. The same code answers the
    record again and prints class, probabilities, the path of rules, whether and why the label was
    requested, and whether this is the answer that was sent.

    \b
    [bold]Examples[/bold]
      grove models rebuild --key user-17 --at 3:1200
      grove models rebuild --key user-17 --at 3-1200 --to then.grove
    """
    import json

    from streamapp.tools.offline.audit import as_text, audit
    from streamapp.tools.offline.place import Place

    place = Place.parse(at)
    installation = installation_of(options)
    with installation.partition(place.partition) as stored:
        rebuilt = audit(stored, key, place, after=after, prefix=installation.names.prefix)
    if to is not None and rebuilt.file is not None:
        write_file(to, rebuilt.file)
    typer.echo(json.dumps(rebuilt.document, ensure_ascii=False) if as_json else as_text(rebuilt.document))


def restore(options: SettingsOptions, partition: OnePartition, yes: Yes = False) -> None:
    """Let a partition go on from its newest whole snapshot: what was learned since is lost.

    Use it for a partition that its worker cannot restore, because records that were processed since were
    deleted. No worker may run at the same time. Committed records are not read again.

    \b
    [bold]Examples[/bold]
      grove models restore --partition 3
    """
    from streamapp.worker.restore.fall_back import fall_back
    from streamapp.worker.task.sources import in_words

    loss = f"Partition {partition} loses all that was learned since its snapshot."
    place = given_up(options, partition, loss, yes=yes)
    fallback = fall_back(place.kafka, place.group, place.names, partition)
    lost = ", ".join(
        f"{source} {first}…{fallback.positions[source]}"
        for source, first in fallback.snapshot.items()
        if first < fallback.positions[source]
    )
    if fallback.snapshot == fallback.positions:
        typer.echo(f"partition {partition} goes on where it stood, at {in_words(fallback.positions)}")
        return
    typer.echo(f"partition {partition} goes on from its snapshot; given up of what was learned: {lost}")


def reset(options: SettingsOptions, partition: OnePartition, yes: Yes = False) -> None:
    """Give a partition new models: what its models have learned is lost.

    Use it for a partition that its worker cannot restore. No worker may run at the same time. Committed
    records are not read again.

    \b
    [bold]Examples[/bold]
      grove models reset --partition 3
    """
    from streamapp.worker.restore.reset import reset as reset_partition
    from streamapp.worker.task.sources import in_words

    loss = f"All models of partition {partition} lose what they have learned."
    place = given_up(options, partition, loss, yes=yes)
    positions = reset_partition(place.kafka, place.group, place.names, partition)
    typer.echo(f"partition {partition} has new models from {in_words(positions)} on")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:,}" if isinstance(value, int) else str(value)


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_,
    "show": show,
    "export": export,
    "import": import_,
    "diff": diff,
    "rebuild": rebuild,
    "restore": restore,
    "reset": reset,
}
for name, command in COMMANDS.items():
    register(app, command, name)
