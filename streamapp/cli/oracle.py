"""`grove oracle`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamapp.cli.data_options import Data, Delimiter, Format, Header, Ignore, Nominal, Target
from streamapp.cli.options import Config, Json, Prefix, Servers, Set, settings_from
from streamapp.errors import UsageError

if TYPE_CHECKING:
    from topics.oracle import OraclePlan

ANSWERS, END = "Answers", "Start and end"


def oracle(
    data: Data,
    form: Format = None,
    target: Target = None,
    header: Header = None,
    delimiter: Delimiter = None,
    ignore: Ignore = None,
    nominal: Nominal = None,
    delay: Annotated[
        str,
        typer.Option(
            "--delay",
            help="Until the answer: 30s, 250ms, 5min; ~30s: random, 30 s on average.",
            rich_help_panel=ANSWERS,
        ),
    ] = "0s",
    error_rate: Annotated[
        float,
        typer.Option("--error-rate", help="Share of wrong labels.", min=0, max=1, rich_help_panel=ANSWERS),
    ] = 0.0,
    loss: Annotated[
        float,
        typer.Option("--loss", help="Share of requests not answered.", min=0, max=1, rich_help_panel=ANSWERS),
    ] = 0.0,
    declined: Annotated[
        float,
        typer.Option("--declined", help="Share of requests declined.", min=0, max=1, rich_help_panel=ANSWERS),
    ] = 0.0,
    event_time: Annotated[
        bool,
        typer.Option(
            "--event-time",
            help="Delays in record time: answer at once, with the request's timestamp plus the delay.",
            rich_help_panel=ANSWERS,
        ),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Of all that is random.", rich_help_panel=ANSWERS)] = 1,
    annotator: Annotated[
        str, typer.Option("--annotator", help="Name in every label.", rich_help_panel=ANSWERS)
    ] = "oracle",
    id_prefix: Annotated[
        str, typer.Option("--id-prefix", help="That of the replay.", rich_help_panel=ANSWERS)
    ] = "",
    loop: Annotated[
        bool, typer.Option("--loop", help="The replay loops over the data.", rich_help_panel=ANSWERS)
    ] = False,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", help="Consumer group.  [default: <application.id>-oracle]", rich_help_panel=END
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", help="Stop after so many answers.", min=1, rich_help_panel=END)
    ] = None,
    idle_seconds: Annotated[
        float | None,
        typer.Option(
            "--idle-seconds", help="Stop when nothing was asked for so long.", min=0.1, rich_help_panel=END
        ),
    ] = None,
    as_json: Json = False,
    config: Config = None,
    servers: Servers = None,
    prefix: Prefix = None,
    assignments: Set = None,
) -> None:
    """Answer label requests from a data set: a labeller that knows everything, for tests and demonstrations.

    Instance ids must be the row numbers that 'grove replay' gives. Ctrl-C stops it.

    \b
    [bold]Examples[/bold]
      grove oracle --data examples/data/a9a.gz
      grove oracle --data elec.csv --delay ~30s --error-rate 0.05 --declined 0.1
      grove oracle --data 'gen:sea?n=1000000' --idle-seconds 10 --json
    """
    import json

    from streamapp.datasets import open_data
    from streamapp.settings.clients import librdkafka_properties
    from topics.definitions import TopicNames
    from topics.oracle import Oracle

    settings = settings_from(config, servers, prefix, assignments)
    plan = _plan(
        delay,
        names=TopicNames(settings.topics_prefix),
        group_id=group or f"{settings.application_id}-oracle",
        id_prefix=id_prefix,
        loop=loop,
        loss=loss,
        declined=declined,
        error_rate=error_rate,
        seed=seed,
        event_time=event_time,
        annotator=annotator or None,
        limit=limit,
        idle_seconds=idle_seconds,
    )
    dataset = open_data(
        data, form, target, header, delimiter=delimiter, ignore=ignore or (), nominal=nominal or ()
    )
    report = _run(Oracle(dataset, plan, librdkafka_properties(settings)), shown=not as_json)
    if as_json:
        typer.echo(json.dumps(report))
        return
    typer.echo(
        f"{report['requests']:,} requests: {report['answered']:,} answered ({report['wrong']:,} wrong, "
        f"{report['declined']:,} declined), {report['lost']:,} lost, {report['unknown']:,} unknown, "
        f"{report['waiting']:,} still waiting"
    )


def _plan(delay: str, **values: Any) -> "OraclePlan":
    from topics.delay import Delay
    from topics.oracle import OraclePlan

    try:
        return OraclePlan(delay=Delay.parse(delay), **values)
    except ValueError as error:
        message = f"--{str(error).replace('_', '-', 1)}"
        raise UsageError(message) from None


def _run(running: Any, shown: bool) -> dict[str, Any]:
    """Run until a signal or the plan's end, with a counter; the report as a dictionary."""
    import dataclasses

    from streamapp.cli.progress import rows_progress
    from streamapp.cli.signals import on_stop

    seen = 0
    with on_stop(running.stop), rows_progress("Answering", None, shown) as bar:

        def progress(state: Any) -> None:
            nonlocal seen
            bar(state.requests - seen)
            seen = state.requests

        return dataclasses.asdict(running.run(progress))
