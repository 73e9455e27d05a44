"""`grove people export` and `grove people erase`: all answers as a table, and the end of a name."""

from pathlib import Path
from typing import Annotated

import typer

from streamapp.cli.options import SettingsOptions, Yes
from streamapp.errors import UsageError


def export(
    options: SettingsOptions,
    table_format: Annotated[
        str, typer.Option("--format", help="csv, or parquet.", metavar="[csv|parquet]")
    ] = "csv",
    output: Annotated[
        Path | None,
        typer.Option("--output", help="File to write; default, for csv: standard output.", metavar="FILE"),
    ] = None,
) -> None:
    """Export all answers of annotators, with the outcome and the review of their requests.

    They come from the topic of audit entries; answers that were taken back are left out (docs/people.md).

    \b
    [bold]Examples[/bold]
      grove people export > answers.csv
      grove people export --format parquet --output answers.parquet
    """
    import sys

    from streamapp.tools.people.answers_table import rows_of, write_csv, write_parquet
    from streamapp.tools.people.audit_topic import read_audit

    if table_format not in ("csv", "parquet"):
        message = f"--format {table_format} must be csv or parquet"
        raise UsageError(message)
    if table_format == "parquet" and output is None:
        message = "--format parquet needs --output FILE: it is no text for a terminal"
        raise UsageError(message)
    if output is not None and not output.parent.is_dir():
        message = f"--output {output}: the folder {output.parent} must exist"
        raise UsageError(message)
    settings, kafka, names = options.connection()
    batches = read_audit(kafka, f"{settings.application_id}-people", names)
    rows = rows_of(entry for batch in batches for entry in batch)
    if output is None:
        write_csv(rows, sys.stdout)
        return
    if table_format == "parquet":
        number = write_parquet(rows, output)
    else:
        with output.open("w", encoding="utf-8", newline="") as file:
            number = write_csv(rows, file)
    typer.echo(f"{number:,} answers are in {output}")


def erase(
    options: SettingsOptions,
    name: Annotated[str, typer.Argument(help="Name of the annotator.", metavar="NAME", show_default=False)],
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", help="File of 'grove web'; default: web.sqlite in state.dir.", metavar="FILE"
        ),
    ] = None,
    pseudonyms: Annotated[
        Path | None,
        typer.Option(
            "--pseudonyms",
            help="File that 'grove web --pseudonyms' has: the pseudonym of the name is erased, too.",
            metavar="FILE",
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Replace an annotator's name by a random pseudonym in the topic of audit entries and in a store.

    No 'grove web' may run. The topic is written again, and its earlier records are deleted; figures stay as
    they are. Labels keep their annotator until the retention of their topic (docs/people.md).

    \b
    [bold]Examples[/bold]
      grove people erase ann
      grove people erase ann --state /var/lib/grove/web.sqlite --yes
    """
    from streamapp.settings.needs import require
    from streamapp.tools.people.erasure import erase_in_store, erase_in_topic

    require("web", "grove people erase")
    from streamapp.web.users import RESERVED

    if name in RESERVED:
        message = f"{name} must be the name of a person; entries with this user are the application's own"
        raise UsageError(message)
    settings, kafka, names = options.connection()
    path = state or settings.state_dir / "web.sqlite"
    if state is not None and not state.exists():
        message = f"--state {state} must be the file of 'grove web'"
        raise UsageError(message)
    if not yes:
        typer.confirm(
            f"{name} is replaced for ever in {names.audit} and {path}. Go on?", abort=True, err=True
        )
    for erased in _names(name, pseudonyms):
        if path.exists():
            _check_unused(path)
        result = erase_in_topic(kafka, f"{settings.application_id}-people", names, erased)
        if path.exists():
            erase_in_store(path, names.audit, erased, result)
        if result.entries:
            typer.echo(f"{erased} is {result.pseudonym} in {result.entries:,} entries of {names.audit}")
        else:
            typer.echo(f"{names.audit} has no entry with {erased}")
    typer.echo(
        f"labels in {names.labels} keep their annotator until they are deleted; remove the user from the "
        "file of --users"
    )


def _check_unused(path: Path) -> None:
    """Raise StreamappError if an application has the file, before the topic is written again."""
    from streamapp.web.store import Store

    Store(path).close()


def _names(name: str, pseudonyms: Path | None) -> list[str]:
    """Return the names to erase: the name, and its pseudonym if there is a file of pseudonyms."""
    from streamapp.web.pseudonyms import Pseudonyms

    if pseudonyms is None:
        return [name]
    if not pseudonyms.exists():
        message = f"--pseudonyms {pseudonyms} must be the file of 'grove web --pseudonyms'"
        raise UsageError(message)
    return [name, Pseudonyms(pseudonyms)(name)]
