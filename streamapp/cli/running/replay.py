"""`grove replay`."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from streamapp.cli.data_options import AnyData, FileOptions, of_data, say_inferred
from streamapp.cli.options import Json, SettingsOptions
from streamapp.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamapp.settings import Settings
    from topics.definitions import TopicNames
    from topics.replay import LoopGroups, ReplayPlan, TopicReplayPlan

of_labels, of_keys, of_time, of_records, of_topics = (
    partial(typer.Option, rich_help_panel=panel)
    for panel in ("Labels", "Model keys", "Time", "Records", "Other topics")
)


@dataclass(frozen=True)
class ReplayOptions:
    """Options for sending, with the names of the fields of ReplayPlan if a field has the same type."""

    labels: Annotated[
        Literal["with", "apart", "none"],
        of_labels(
            "--labels",
            help="Labels in the instances (learned at once), apart on the topic of labels, or none.",
        ),
    ] = "with"
    label_delay: Annotated[
        str,
        of_labels(
            "--label-delay",
            "--delay",
            help="Delay of labels apart: 200 (rows) or 30s, 250ms, 5min; or drawn for each row: ~30s or "
            "exponential:30s (mean), uniform:10s-5min, lognormal:30s,1.5 (median, SIGMA of the logarithm).",
        ),
    ] = "0"
    label_loss: Annotated[
        float, of_labels("--label-loss", help="Share of labels never sent.", min=0, max=1)
    ] = 0.0
    keys: Annotated[
        list[str] | None, of_keys("--key", "-k", help="Model key; may be repeated.  [default: default]")
    ] = None
    n_keys: Annotated[int | None, of_keys("--keys", help="Number of keys: model-0, model-1, ….", min=1)] = (
        None
    )
    spread: Annotated[
        Literal["each", "round-robin", "zipf"],
        of_keys("--spread", help="Every row to each key, or to one of them."),
    ] = "each"
    zipf_exponent: Annotated[float, of_keys("--zipf", help="Exponent of --spread zipf.", min=0)] = 1.1
    rate: Annotated[
        float | None, of_time("--rate", "-r", help="Rows per second; default: as fast as possible.")
    ] = None
    max_outstanding: Annotated[
        int | None,
        of_time(
            "--max-outstanding",
            help="Limit of sent rows whose labels are not yet requested, answered and learned.",
            metavar="N",
            min=1,
        ),
    ] = None
    records: Annotated[
        int | None, of_time("--records", "-n", help="Number of rows to send; default: all.", min=1)
    ] = None
    from_row: Annotated[int, of_time("--from-row", help="Begin (or go on) at this row.", min=0)] = 0
    loop: Annotated[bool, of_time("--loop", help="Begin again at the end, until Ctrl-C.")] = False
    start_ms: Annotated[
        int | None, of_time("--start-ms", help="Timestamp of row 0; default: the time of sending.", min=0)
    ] = None
    step_ms: Annotated[float, of_time("--step-ms", help="Time from row to row, with --start-ms.", min=0)] = (
        1.0
    )
    format: Annotated[
        Literal["json", "packed", "arrow", "avro"],
        of_records("--wire", "-w", help="Format of the records; avro needs a schema registry."),
    ] = "json"
    block_rows: Annotated[int, of_records("--block-rows", help="Rows of an arrow block.", min=1)] = 1000
    by_name: Annotated[
        bool, of_records("--by-name/--by-position", help="JSON features by name or as an array.")
    ] = True
    withhold: Annotated[
        list[str] | None,
        of_records(
            "--withhold",
            help="Feature to leave out, for the model to request; may be repeated; '*': all.",
            metavar="NAME",
        ),
    ] = None
    ids: Annotated[bool, of_records("--ids/--no-ids", help="Row numbers as instance ids.")] = True
    id_prefix: Annotated[str, of_records("--id-prefix", help="Prefix of the row number.")] = ""
    oracle_group: Annotated[
        str | None,
        of_time(
            "--oracle-group",
            help="Consumer group of the oracle, for --max-outstanding.  [default: <application.id>-oracle]",
            metavar="GROUP",
        ),
    ] = None
    seed: Annotated[int, typer.Option("--seed", help="Seed of lost labels, random delays, Zipf keys.")] = 1

    def plan(self, names: "TopicNames") -> "ReplayPlan":
        """The plan of the replay; UsageError if the options make no stream."""
        from topics.delay import Delay
        from topics.replay import ReplayPlan

        if self.keys and self.n_keys:
            message = "--keys and --key exclude each other; give one of them"
            raise UsageError(message)
        members = dict(vars(self))
        n_keys = members.pop("n_keys")
        members.pop("oracle_group")
        members["withhold"] = tuple(self.withhold or ())
        members["keys"] = tuple(
            self.keys or ([f"model-{i}" for i in range(n_keys)] if n_keys else ["default"])
        )
        try:
            members["label_delay"] = Delay.parse(self.label_delay)
            return ReplayPlan(names=names, **members)
        except ValueError as error:
            text = str(error)
            for ours, option in (("delay=", "label_delay="), ("keys=", "key=")):
                text = text.replace(ours, option, 1) if text.startswith(ours) else text
            raise UsageError(
                f"--{text.replace('_', '-', 1)}" if "=" in text.split(" ")[0] else text
            ) from None

    def groups(self, application: str) -> "LoopGroups":
        """The groups of the label loop of an application."""
        from topics.replay import LoopGroups

        oracle = self.oracle_group or f"{application}-oracle"
        return LoopGroups(application, oracle, f"{application}-feature-oracle")


@dataclass(frozen=True)
class ReplayFileOptions(FileOptions):
    """Options for reading a file; `--format avro`, which no file has, is the format of the records."""

    form: Annotated[
        Literal["arff", "libsvm", "csv", "parquet", "arrow", "avro"] | None,
        of_data("--format", "-f", help="Format of the file; default: by its content. avro: as --wire avro."),
    ] = None  # type: ignore[assignment] # one value more than other commands take


@dataclass(frozen=True)
class TopicOptions:
    """Topics that are sent again, instead of a data set."""

    from_topic: Annotated[
        list[str] | None,
        of_topics(
            "--from-topic",
            help="Topic to send again; its name ends with the target's, or SOURCE=NAME; may be repeated.",
            metavar="TOPIC",
        ),
    ] = None
    begin: Annotated[
        str | None, of_topics("--from", help="From this record time on, ISO 8601.", metavar="TIME")
    ] = None
    end: Annotated[str | None, of_topics("--to", help="Up to before this record time.", metavar="TIME")] = (
        None
    )

    def plan(self, names: "TopicNames", sent: ReplayOptions) -> "TopicReplayPlan":
        """The plan of the replay; UsageError if a topic has no target."""
        from topics.definitions import CATALOGUE
        from topics.replay import TopicReplayPlan, target_of

        inputs = {topic.name: names.of(topic) for topic in CATALOGUE if topic.direction == "in"}
        targets, inputs_shown = {}, ", ".join(inputs)
        for pair in self.from_topic or ():
            source, equals, name = pair.partition("=")
            target = name if equals else target_of(source, list(inputs))
            if target not in inputs:
                message = (
                    f"--from-topic {pair}: its target must be one of {inputs_shown}; write {source}=NAME"
                )
                raise UsageError(message)
            targets[source] = inputs[target]
        times = _milliseconds("--from", self.begin), _milliseconds("--to", self.end)
        try:
            return TopicReplayPlan(targets, *times, sent.rate, sent.records)
        except ValueError as error:
            message = f"--{str(error).replace('_', '-', 1)}"
            raise UsageError(message) from None


def _milliseconds(option: str, text: str | None) -> int | None:
    """Return a time in ms since the epoch; a time without a zone is in the zone of this machine."""
    from datetime import datetime

    if text is None:
        return None
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        message = f"{option} {text} must be a time such as 2026-11-22T18:00:00+01:00"
        raise UsageError(message) from None


def replay(
    file: ReplayFileOptions,
    sent: ReplayOptions,
    again: TopicOptions,
    options: SettingsOptions,
    data: AnyData = None,
    as_json: Json = False,
) -> None:
    """Send a data set as a stream of instances, and its labels with them, later, or not at all.

    Ctrl-C stops it; the report has the row at which to continue. With --from-topic it sends records of
    other topics again instead, with unchanged keys, headers and times, merged in the order of their times.

    \b
    [bold]Examples[/bold]
      grove replay --data examples/data/a9a.gz
      grove replay --data elec.csv --labels apart --label-delay 200 --rate 1000
      grove replay --data elec.csv --labels none --key a --key b
      grove replay --data elec.csv --labels none --max-outstanding 1000
      grove replay --data elec.csv --labels none --withhold nswprice --withhold nswdemand
      grove replay --data 'gen:sea?n=1000000' --keys 64 --spread zipf --wire packed
      grove replay --data sales.parquet --target returned
      grove replay --data elec.csv --format avro
      grove replay --from-topic grove.instances --from-topic grove.labels --topics-prefix trial.
      grove replay --from-topic grove.instances --from 2026-11-01 --to 2026-11-08 --topics-prefix trial.
    """
    if file.form == "avro":
        if sent.format not in ("json", "avro"):
            message = f"--format avro and --wire {sent.format} exclude each other; give one of them"
            raise UsageError(message)
        sent, file = replace(sent, format="avro"), replace(file, form=None)
    if (data is None) == (not again.from_topic):
        message = "one of --data and --from-topic must be given"
        raise UsageError(message)
    if data is None:
        _replay_topics(file, sent, again, options, as_json=as_json)
        return
    if again != TopicOptions():
        message = "--from and --to must be left out with --data; --from-row begins at a row"
        raise UsageError(message)
    import dataclasses
    import json

    from streamapp.cli.progress import say_on_stderr, stoppable_progress
    from streamapp.lab.datasets import open_data
    from topics.replay import Replay

    settings, kafka, names = options.connection()
    plan = sent.plan(names)
    groups = sent.groups(settings.application_id)
    rows = None if plan.records is None else plan.from_row + plan.records
    dataset = open_data(data, rows, bounded_by="--records", **vars(file))
    if not as_json:
        say_inferred(dataset, file)
    register = _register(settings) if plan.format == "avro" else None
    running = Replay(dataset, plan, kafka, groups, say_on_stderr, register)
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


def _register(settings: "Settings") -> "Callable[[str, str, str], int]":
    """Return a function that registers the schema of a topic under its subject, and returns its id."""
    from streamapp.settings.clients import registry_of
    from topics.registry.subject_names import subject_name

    registry = registry_of(settings)
    if registry is None:
        message = "records in Avro need schema.registry.url, where their schemas are registered; set it"
        raise UsageError(message)

    def register(topic: str, record_name: str, text: str) -> int:
        subject = subject_name(settings.value_subject_name_strategy, topic, f"streamgrove.{record_name}")
        return registry.register(subject, "AVRO", text)

    return register


def _replay_topics(
    file: ReplayFileOptions,
    sent: ReplayOptions,
    again: TopicOptions,
    options: SettingsOptions,
    *,
    as_json: bool,
) -> None:
    import dataclasses
    import json
    from datetime import UTC, datetime

    from streamapp.cli.progress import stoppable_progress
    from topics.fetching.batches import Limit
    from topics.replay import TopicReplay

    if file != ReplayFileOptions() or sent != ReplayOptions(rate=sent.rate, records=sent.records):
        message = "--from-topic sends records as they are: beside it only --from, --to, --rate and --records"
        raise UsageError(message)
    settings, kafka, names = options.connection()
    running = TopicReplay(again.plan(names, sent), kafka, Limit(settings.fetch_decompressed_max_bytes))
    with stoppable_progress(running.stop, "Replaying", shown=not as_json) as bar:
        report = running.run(lambda so_far: bar(so_far.records))
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report)))
        return
    for topic, n in report.by_topic.items():
        typer.echo(f"{topic}: {n:,} records")
    if report.left_out:
        typer.echo(f"left out: {report.left_out:,} without a key, or with names of headers that are no text")
    if report.next_ms is not None:
        next_time = datetime.fromtimestamp(report.next_ms / 1000, UTC).isoformat(timespec="milliseconds")
        typer.echo(f"stopped; go on with --from {next_time}")
