"""`grove replay`."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from streamapp.cli.data_options import Data, Delimiter, Format, Header, Ignore, Nominal, Target
from streamapp.cli.options import Config, Json, Prefix, Servers, Set, settings_from
from streamapp.errors import UsageError

if TYPE_CHECKING:
    from topics.replay import ReplayPlan

LABELS, KEYS, TIME, WIRE = "Labels", "Model keys", "Time", "Records"


def replay(
    data: Data,
    form: Format = None,
    target: Target = None,
    header: Header = None,
    delimiter: Delimiter = None,
    ignore: Ignore = None,
    nominal: Nominal = None,
    labels: Annotated[
        Literal["with", "apart", "none"],
        typer.Option(
            "--labels",
            help="with the instance (learned at once), apart on a topic of their own, or none.",
            rich_help_panel=LABELS,
        ),
    ] = "with",
    delay: Annotated[
        str,
        typer.Option(
            "--label-delay",
            help="Of labels apart: 200 (rows) or 30s, 250ms, 5min; ~30s: random, 30 s on average.",
            rich_help_panel=LABELS,
        ),
    ] = "0",
    loss: Annotated[
        float,
        typer.Option(
            "--label-loss", help="Share of labels never sent.", min=0, max=1, rich_help_panel=LABELS
        ),
    ] = 0.0,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--key", "-k", help="Model key; may be repeated.  [default: default]", rich_help_panel=KEYS
        ),
    ] = None,
    n_keys: Annotated[
        int | None,
        typer.Option("--keys", help="So many keys: model-0, model-1, ….", min=1, rich_help_panel=KEYS),
    ] = None,
    spread: Annotated[
        Literal["each", "round-robin", "zipf"],
        typer.Option("--spread", help="Every row to each key, or to one of them.", rich_help_panel=KEYS),
    ] = "each",
    zipf: Annotated[
        float, typer.Option("--zipf", help="Exponent of --spread zipf.", min=0, rich_help_panel=KEYS)
    ] = 1.1,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", "-r", help="Rows per second; default: as fast as possible.", rich_help_panel=TIME
        ),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option("--records", "-n", help="Stop after so many rows.", min=1, rich_help_panel=TIME),
    ] = None,
    from_row: Annotated[
        int, typer.Option("--from-row", help="Begin (or go on) at this row.", min=0, rich_help_panel=TIME)
    ] = 0,
    loop: Annotated[
        bool, typer.Option("--loop", help="Begin again at the end, until Ctrl-C.", rich_help_panel=TIME)
    ] = False,
    start_ms: Annotated[
        int | None,
        typer.Option(
            "--start-ms",
            help="Timestamp of row 0; default: the time of sending.",
            min=0,
            rich_help_panel=TIME,
        ),
    ] = None,
    step_ms: Annotated[
        float,
        typer.Option("--step-ms", help="From row to row, with --start-ms.", min=0, rich_help_panel=TIME),
    ] = 1.0,
    wire: Annotated[
        Literal["json", "packed", "arrow"], typer.Option("--wire", "-w", help="Format.", rich_help_panel=WIRE)
    ] = "json",
    block_rows: Annotated[
        int, typer.Option("--block-rows", help="Rows of an arrow block.", min=1, rich_help_panel=WIRE)
    ] = 1000,
    by_name: Annotated[
        bool,
        typer.Option(
            "--by-name/--by-position", help="JSON features by name or as an array.", rich_help_panel=WIRE
        ),
    ] = True,
    ids: Annotated[
        bool, typer.Option("--ids/--no-ids", help="Row numbers as instance ids.", rich_help_panel=WIRE)
    ] = True,
    id_prefix: Annotated[
        str, typer.Option("--id-prefix", help="Stands before the row number.", rich_help_panel=WIRE)
    ] = "",
    seed: Annotated[int, typer.Option("--seed", help="Of lost labels, random delays, Zipf keys.")] = 1,
    as_json: Json = False,
    config: Config = None,
    servers: Servers = None,
    prefix: Prefix = None,
    assignments: Set = None,
) -> None:
    """Send a data set as a stream of instances, and its labels with them, later, or not at all.

    Ctrl-C stops it; the report says at which row to go on.

    \b
    [bold]Examples[/bold]
      grove replay --data examples/data/a9a.gz
      grove replay --data elec.csv --labels apart --label-delay 200 --rate 1000
      grove replay --data elec.csv --labels none --key a --key b
      grove replay --data 'gen:sea?n=1000000' --keys 64 --spread zipf --wire packed
    """
    import json

    from streamapp.datasets import open_data
    from streamapp.settings.clients import librdkafka_properties
    from topics.definitions import TopicNames
    from topics.replay import Replay

    settings = settings_from(config, servers, prefix, assignments)
    if keys and n_keys:
        message = "--keys and --key exclude each other; give the one or the other"
        raise UsageError(message)
    plan = _plan(
        names=TopicNames(settings.topics_prefix),
        keys=tuple(keys or ([f"model-{i}" for i in range(n_keys)] if n_keys else ["default"])),
        spread=spread,
        zipf_exponent=zipf,
        labels=labels,
        label_delay=delay,
        label_loss=loss,
        format=wire,
        block_rows=block_rows,
        by_name=by_name,
        ids=ids,
        id_prefix=id_prefix,
        rate=rate,
        records=records,
        from_row=from_row,
        loop=loop,
        start_ms=start_ms,
        step_ms=step_ms,
        seed=seed,
    )
    rows = None if records is None else from_row + records
    dataset = open_data(
        data,
        form,
        target,
        header,
        rows,
        delimiter=delimiter,
        ignore=ignore or (),
        nominal=nominal or (),
        bounded_by="--records",
    )
    report = _run(Replay(dataset, plan, librdkafka_properties(settings)), shown=not as_json)
    if as_json:
        typer.echo(json.dumps(report))
        return
    typer.echo(
        f"{report['rows']:,} rows: {report['instances']:,} instances, {report['labels']:,} labels "
        f"({report['labels_lost']:,} lost) in {report['seconds']:.1f} s, "
        f"{report['rows_per_second']:,.0f} rows/s"
    )
    if report["stopped"]:
        typer.echo(f"stopped; go on with --from-row {report['next_row']}")


def _plan(label_delay: str, **values: Any) -> "ReplayPlan":
    from topics.delay import Delay
    from topics.replay import ReplayPlan

    try:
        return ReplayPlan(label_delay=Delay.parse(label_delay), **values)
    except ValueError as error:
        text = str(error)
        for ours, option in (("delay=", "label_delay="), ("keys=", "key=")):
            text = text.replace(ours, option, 1) if text.startswith(ours) else text
        raise UsageError(f"--{text.replace('_', '-', 1)}" if "=" in text.split(" ")[0] else text) from None


def _run(running: Any, shown: bool) -> dict[str, Any]:
    """Run to the end or to a signal, with a bar; the report as a dictionary."""
    import dataclasses

    from streamapp.cli.progress import rows_progress
    from streamapp.cli.signals import on_stop

    sent = 0
    with on_stop(running.stop), rows_progress("Replaying", None, shown) as bar:

        def progress(state: Any) -> None:
            nonlocal sent
            bar(state.rows - sent, state.total_rows)
            sent = state.rows

        report = running.run(progress)
    return {**dataclasses.asdict(report), "rows_per_second": round(report.rows_per_second, 1)}
