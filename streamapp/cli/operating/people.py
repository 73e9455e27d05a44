"""`grove people`: figures about annotators, from the topic of audit entries."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamapp.cli.operating.people_data import erase, export
from streamapp.cli.options import Json, SettingsOptions
from streamapp.cli.register import register
from streamapp.errors import UsageError

if TYPE_CHECKING:
    from streamapp.people.coefficients import Agreement
    from streamapp.people.people_store import PeopleStore

app = typer.Typer(
    help="Annotators: their answers, their agreement with each other, their answers to gold questions.",
    no_args_is_help=True,
)

Csv = Annotated[bool, typer.Option("--csv", help="Print comma-separated values with a head.")]
Person = Annotated[
    str | None, typer.Option("--annotator", help="Figures of this person alone.", metavar="NAME")
]


def list_(
    options: SettingsOptions,
    since: Annotated[
        str | None,
        typer.Option("--since", help="First day, UTC; default: the first in the topic.", metavar="DAY"),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", help="Last day, UTC; default: the last in the topic.", metavar="DAY"),
    ] = None,
    annotator: Person = None,
    is_total: Annotated[
        bool, typer.Option("--total/--by-day", help="One line for each person, or for each person and day.")
    ] = False,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """List the figures of annotators by UTC day (docs/people.md).

    They are answers, the median time of an answer, agreement with other people, right answers to gold
    questions with their interval, declines, and answers that were taken back. All of it is read from the
    topic of audit entries.

    \b
    [bold]Examples[/bold]
      grove people list
      grove people list --total --since 2026-11-01
      grove people list --annotator ann --csv
    """
    from streamapp.people import annotator_statistics

    _one_format(as_json=as_json, as_csv=as_csv)
    first, last = _day("--since", since, 0), _day("--until", until, 1 << 40)
    read = annotator_statistics.by_annotator if is_total else annotator_statistics.by_day
    people = _people(options)
    try:
        with people.reading() as db:
            figures = [person.document() for person in read(db, first, last, annotator)]
    finally:
        people.close()
    if is_total:
        for document in figures:
            del document["day"]
    _print(figures, as_json=as_json, as_csv=as_csv)


def agreement(
    options: SettingsOptions,
    key: Annotated[
        str | None, typer.Option("--key", help="Figures of this model alone, and by class.", metavar="KEY")
    ] = None,
    are_pairs: Annotated[
        bool, typer.Option("--pairs", help="Cohen's kappa of each two people, on each model.")
    ] = False,
    annotator: Annotated[
        str | None,
        typer.Option("--annotator", help="With --pairs: pairs with this person alone.", metavar="NAME"),
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Show how far annotators agree beyond chance on records that several have answered (docs/people.md).

    Fleiss' kappa and Krippendorff's alpha of each model; with --pairs Cohen's kappa of each two people. With
    --key the figures of one model, of all its classes and of each class beside the others. All have an
    interval of 95 %, or the reason why they have none.

    \b
    [bold]Examples[/bold]
      grove people agreement
      grove people agreement --key shop-17
      grove people agreement --pairs --annotator ann --csv
    """
    from streamapp.people import answer_overlap

    _one_format(as_json=as_json, as_csv=as_csv)
    if annotator is not None and not are_pairs:
        message = f"--annotator {annotator} needs --pairs: the agreement of a model belongs to all its people"
        raise UsageError(message)
    people = _people(options)
    try:
        with people.reading() as db:
            if are_pairs:
                pairs = answer_overlap.agreement_of_pairs(db, 1 << 40, key=key, annotator=annotator)
                if key is not None:
                    by_pair = [answer_overlap.agreement_of_pair(db, *pair[:3]) for pair in pairs]
                    pairs = [row for rows_of_pair in by_pair for row in rows_of_pair]
                rows = [
                    {"key": pair.key, "first": pair.first, "second": pair.second, "class": pair.label}
                    | {"agreed": pair.agreed}
                    | _figure("cohen", pair.cohen)
                    for pair in pairs
                ]
            else:
                models = answer_overlap.agreement_of_models(db, 1 << 40)
                if key is not None:
                    models = [model for model in models if model.key == key]
                    models += answer_overlap.agreement_of_classes(db, key)
                rows = [
                    {"key": model.key, "class": model.label}
                    | _figure("fleiss", model.fleiss)
                    | _figure("krippendorff", model.krippendorff)
                    for model in models
                ]
    finally:
        people.close()
    _print(rows, as_json=as_json, as_csv=as_csv)


def _figure(name: str, figure: "Agreement") -> dict[str, Any]:
    return {
        "records": figure.records,
        name: figure.value,
        f"{name}_low": figure.low,
        f"{name}_high": figure.high,
        f"{name}_reason": figure.reason or None,
    }


def _people(options: SettingsOptions) -> "PeopleStore":
    from streamapp.tools.people.audit_topic import people_in

    settings, kafka, names = options.connection()
    return people_in(kafka, f"{settings.application_id}-people", names)  # the group commits nothing


def _one_format(*, as_json: bool, as_csv: bool) -> None:
    if as_json and as_csv:
        message = "--json and --csv must not be given together: choose one of them"
        raise UsageError(message)


def _day(option: str, text: str | None, default: int) -> int:
    """Return the number of a day since the epoch."""
    from datetime import date

    if text is None:
        return default
    try:
        return (date.fromisoformat(text) - date(1970, 1, 1)).days
    except ValueError:
        message = f"{option} {text} must be a day such as 2026-11-22"
        raise UsageError(message) from None


def _print(rows: Iterable[Mapping[str, Any]], *, as_json: bool, as_csv: bool) -> None:
    """Print rows of equal columns."""
    import csv
    import json
    import sys

    from rich.console import Console
    from rich.table import Table

    from streamapp.cli.table_cells import cell

    rows = list(rows)
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    if not rows:
        typer.echo("the topic has no such answers", err=True)
        return
    if as_csv:
        writer = csv.DictWriter(sys.stdout, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _safe(value) for name, value in row.items()} for row in rows)
        return
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    numbers = {name for row in rows for name, value in row.items() if isinstance(value, int | float)}
    for name in rows[0]:
        table.add_column(
            name.replace("_", " "), overflow="fold", justify="right" if name in numbers else "left"
        )
    for row in rows:
        table.add_row(*(cell(_text(value)) for value in row.values()))
    Console(highlight=False).print(table)


def _text(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _safe(value: object) -> object:
    """Return a value that no spreadsheet takes for a formula; names of people and models are free texts."""
    return (
        f"'{value}"
        if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
        else value
    )


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_,
    "agreement": agreement,
    "export": export,
    "erase": erase,
}
for name, command in COMMANDS.items():
    register(app, command, name)
