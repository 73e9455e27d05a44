"""`grove replay`."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from streamapp.cli.data_options import Data, FileOptions
from streamapp.cli.options import Json, SettingsOptions
from streamapp.errors import UsageError

if TYPE_CHECKING:
    from topics.definitions import TopicNames
    from topics.replay import ReplayPlan

of_labels, of_keys, of_time, of_records = (
    partial(typer.Option, rich_help_panel=panel) for panel in ("Labels", "Model keys", "Time", "Records")
)


@dataclass(frozen=True)
class ReplayOptions:
    """What is sent and how, under the names of ReplayPlan where it is of the same form there."""

    labels: Annotated[
        Literal["with", "apart", "none"],
        of_labels(
            "--labels", help="with the instance (learned at once), apart on a topic of their own, or none."
        ),
    ] = "with"
    label_delay: Annotated[
        str,
        of_labels(
            "--label-delay",
            help="Of labels apart: 200 (rows) or 30s, 250ms, 5min; ~30s: random, 30 s on average.",
        ),
    ] = "0"
    label_loss: Annotated[
        float, of_labels("--label-loss", help="Share of labels never sent.", min=0, max=1)
    ] = 0.0
    keys: Annotated[
        list[str] | None, of_keys("--key", "-k", help="Model key; may be repeated.  [default: default]")
    ] = None
    n_keys: Annotated[int | None, of_keys("--keys", help="So many keys: model-0, model-1, ….", min=1)] = None
    spread: Annotated[
        Literal["each", "round-robin", "zipf"],
        of_keys("--spread", help="Every row to each key, or to one of them."),
    ] = "each"
    zipf_exponent: Annotated[float, of_keys("--zipf", help="Exponent of --spread zipf.", min=0)] = 1.1
    rate: Annotated[
        float | None, of_time("--rate", "-r", help="Rows per second; default: as fast as possible.")
    ] = None
    records: Annotated[int | None, of_time("--records", "-n", help="Stop after so many rows.", min=1)] = None
    from_row: Annotated[int, of_time("--from-row", help="Begin (or go on) at this row.", min=0)] = 0
    loop: Annotated[bool, of_time("--loop", help="Begin again at the end, until Ctrl-C.")] = False
    start_ms: Annotated[
        int | None, of_time("--start-ms", help="Timestamp of row 0; default: the time of sending.", min=0)
    ] = None
    step_ms: Annotated[float, of_time("--step-ms", help="From row to row, with --start-ms.", min=0)] = 1.0
    format: Annotated[Literal["json", "packed", "arrow"], of_records("--wire", "-w", help="Format.")] = "json"
    block_rows: Annotated[int, of_records("--block-rows", help="Rows of an arrow block.", min=1)] = 1000
    by_name: Annotated[
        bool, of_records("--by-name/--by-position", help="JSON features by name or as an array.")
    ] = True
    withhold: Annotated[
        list[str] | None,
        of_records(
            "--withhold",
            help="Feature that instances come without, to be asked for; may be repeated; '*': all.",
            metavar="NAME",
        ),
    ] = None
    ids: Annotated[bool, of_records("--ids/--no-ids", help="Row numbers as instance ids.")] = True
    id_prefix: Annotated[str, of_records("--id-prefix", help="Prefix of the row number.")] = ""
    seed: Annotated[int, typer.Option("--seed", help="Of lost labels, random delays, Zipf keys.")] = 1

    def plan(self, names: "TopicNames") -> "ReplayPlan":
        """The plan of the replay; UsageError where it makes no stream."""
        from topics.delay import Delay
        from topics.replay import ReplayPlan

        if self.keys and self.n_keys:
            message = "--keys and --key exclude each other; give the one or the other"
            raise UsageError(message)
        given = dict(vars(self))
        n_keys = given.pop("n_keys")
        given["withhold"] = tuple(self.withhold or ())
        given["keys"] = tuple(self.keys or ([f"model-{i}" for i in range(n_keys)] if n_keys else ["default"]))
        try:
            given["label_delay"] = Delay.parse(self.label_delay)
            return ReplayPlan(names=names, **given)
        except ValueError as error:
            text = str(error)
            for ours, option in (("delay=", "label_delay="), ("keys=", "key=")):
                text = text.replace(ours, option, 1) if text.startswith(ours) else text
            raise UsageError(
                f"--{text.replace('_', '-', 1)}" if "=" in text.split(" ")[0] else text
            ) from None


def replay(
    data: Data, file: FileOptions, sent: ReplayOptions, given: SettingsOptions, as_json: Json = False
) -> None:
    """Send a data set as a stream of instances, and its labels with them, later, or not at all.

    Ctrl-C stops it; the report says at which row to go on.

    \b
    [bold]Examples[/bold]
      grove replay --data examples/data/a9a.gz
      grove replay --data elec.csv --labels apart --label-delay 200 --rate 1000
      grove replay --data elec.csv --labels none --key a --key b
      grove replay --data elec.csv --labels none --withhold nswprice --withhold nswdemand
      grove replay --data 'gen:sea?n=1000000' --keys 64 --spread zipf --wire packed
    """
    import dataclasses
    import json

    from streamapp.cli.progress import stoppable_progress
    from streamapp.datasets import open_data
    from topics.replay import Replay

    _, kafka, names = given.connection()
    plan = sent.plan(names)
    rows = None if plan.records is None else plan.from_row + plan.records
    running = Replay(open_data(data, rows, bounded_by="--records", **vars(file)), plan, kafka)
    with stoppable_progress(running.stop, "Replaying", shown=not as_json) as bar:
        report = running.run(lambda so_far: bar(so_far.rows, so_far.total_rows))
    if as_json:
        facts = dataclasses.asdict(report) | {"rows_per_second": round(report.rows_per_second, 1)}
        typer.echo(json.dumps(facts))
        return
    typer.echo(
        f"{report.rows:,} rows: {report.instances:,} instances, {report.labels:,} labels "
        f"({report.labels_lost:,} lost) in {report.seconds:.1f} s, {report.rows_per_second:,.0f} rows/s"
    )
    if report.stopped:
        typer.echo(f"stopped; go on with --from-row {report.next_row}")
