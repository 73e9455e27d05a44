"""`grove oracle`."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from streamapp.cli.data_options import Data, FileOptions, say_inferred
from streamapp.cli.options import Json, SettingsOptions
from streamapp.errors import UsageError

if TYPE_CHECKING:
    from topics.definitions import TopicNames
    from topics.oracle import OraclePlan

of_answers, of_end = (partial(typer.Option, rich_help_panel=panel) for panel in ("Answers", "Start and end"))


@dataclass(frozen=True)
class OracleOptions:
    """Options for answering requests, with the names of the fields of OraclePlan."""

    delay: Annotated[
        str,
        of_answers(
            "--delay",
            help="Delay of answers: 30s, 250ms, 5min; or drawn: ~30s or exponential:30s (mean), "
            "uniform:10s-5min, lognormal:30s,1.5 (median, SIGMA of the logarithm).",
        ),
    ] = "0s"
    features: Annotated[
        bool, of_answers("--features", help="Answer feature requests, with the values of the row.")
    ] = False
    unavailable: Annotated[
        float, of_answers("--unavailable", help="Share of features that are not available.", min=0, max=1)
    ] = 0.0
    error_rate: Annotated[float, of_answers("--error-rate", help="Share of wrong labels.", min=0, max=1)] = (
        0.0
    )
    loss: Annotated[float, of_answers("--loss", help="Share of requests not answered.", min=0, max=1)] = 0.0
    declined: Annotated[float, of_answers("--declined", help="Share of requests declined.", min=0, max=1)] = (
        0.0
    )
    left_to_people: Annotated[
        list[str] | None,
        of_answers("--except", help="Model whose requests are left to people.", metavar="KEY"),
    ] = None
    event_time: Annotated[
        bool,
        of_answers(
            "--event-time",
            help="Delays in record time: answer immediately, with the request's timestamp plus the delay.",
        ),
    ] = False
    seed: Annotated[int, of_answers("--seed", help="Seed of all random numbers.")] = 1
    annotator: Annotated[str, of_answers("--annotator", help="Name in every label.")] = "oracle"
    id_prefix: Annotated[str, of_answers("--id-prefix", help="Prefix that the replay has.")] = ""
    loop: Annotated[bool, of_answers("--loop", help="The data repeat, as in a replay with --loop.")] = False
    group_id: Annotated[
        str | None,
        of_end(
            "--group",
            help="Consumer group.  [default: <application.id>-oracle, with --features …-feature-oracle]",
        ),
    ] = None
    limit: Annotated[
        int | None, of_end("--limit", help="Number of answers to give; default: no limit.", min=1)
    ] = None
    idle_seconds: Annotated[
        float | None,
        of_end("--idle-seconds", help="Stop after a time without requests; default: never.", min=0.1),
    ] = None

    def plan(self, names: "TopicNames", application: str) -> "OraclePlan":
        """The plan of the oracle; UsageError if the options contradict each other."""
        from topics.delay import Delay
        from topics.oracle import OraclePlan

        members = vars(self) | {
            "left_to_people": tuple(self.left_to_people or ()),
            "group_id": self.group_id or f"{application}-{'feature-' * self.features}oracle",
            "annotator": self.annotator or None,
        }
        try:
            return OraclePlan(names=names, **(members | {"delay": Delay.parse(self.delay)}))
        except ValueError as error:
            message = f"--{str(error).replace('_', '-', 1)}"
            raise UsageError(message) from None


def oracle(
    data: Data, file: FileOptions, answers: OracleOptions, options: SettingsOptions, as_json: Json = False
) -> None:
    """Answer label requests from a data set, as a perfect annotator for tests and demonstrations.

    With --features it answers feature requests instead; if models request both, run one oracle of each
    kind.

    Instance ids must be the row numbers that 'grove replay' gives. Ctrl-C stops it.

    \b
    [bold]Examples[/bold]
      grove oracle --data examples/data/a9a.gz
      grove oracle --data elec.csv --delay ~30s --error-rate 0.05 --declined 0.1
      grove oracle --data elec.csv --except shop-17
      grove oracle --data elec.csv --features --delay ~2s --loss 0.01 --unavailable 0.05
      grove oracle --data 'gen:sea?n=1000000' --idle-seconds 10 --json
    """
    import dataclasses
    import json

    from streamapp.cli.progress import stoppable_progress
    from streamapp.lab.datasets import open_data
    from streamapp.settings.clients import output_reader
    from topics.oracle import Oracle

    settings, kafka, names = options.connection()
    plan = answers.plan(names, settings.application_id)
    dataset = open_data(data, **vars(file))
    if not as_json:
        say_inferred(dataset, file)
    running = Oracle(dataset, plan, kafka, output_reader(settings))
    with stoppable_progress(running.stop, "Answering", shown=not as_json) as bar:
        report = running.run(lambda so_far: bar(so_far.requests))
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report)))
        return
    how = f"{report.wrong:,} wrong, {report.declined:,} declined"
    if plan.features:
        how = f"{report.features:,} features, {report.unavailable:,} not available"
    typer.echo(
        f"{report.requests:,} requests: {report.answered:,} answered ({how}), {report.lost:,} lost, "
        f"{report.unknown:,} unknown, {report.waiting:,} still waiting"
    )
