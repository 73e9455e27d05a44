"""`grove experiment`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from streamapp.errors import UsageError


def experiment(
    name: Annotated[str, typer.Argument(help="Name of the experiment.", metavar="NAME")],
    size: Annotated[
        Literal["quick", "medium", "full"] | None,
        typer.Option(
            "--size", help="quick: seconds, medium: minutes, full: the published size.", show_default="medium"
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The same as --size quick.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes.", min=1)] = 1,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the results.", metavar="FOLDER")
    ] = Path("experiments"),
    data: Annotated[
        Path | None,
        typer.Option(
            "--datasets", envvar="GROVE_DATASETS", help="Folder of real data sets.", metavar="FOLDER"
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished cells again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as one JSON object.")] = False,
) -> None:
    """Run an experiment of the papers, offline: tables as CSV, JSON and Markdown, charts as SVG.

    Charts are SVG, which every browser shows and can convert to PNG. They are drawn by matplotlib, which
    the extra experiments installs. An interrupted experiment continues where it stopped: the folder keeps
    the cells that this version of grove has run. docs/experiments.md has our figures beside the published
    figures.

    \b
    [bold]Experiments[/bold]
      afa-answers   UFODT answered by a draw, and by means of its posterior (--datasets)
      afa-figure2   what UFODT pays for features and is right, on sets of bits (--datasets)
      afa-figure4   the same on numbers: thresholds learned or searched, OFS (--datasets)
      afa-figure7   the same against the number of hypotheses (--datasets)
      afa-figure10  UFODT on Stagger against hypotheses, and the quality of its prior
      afa-stagger   what UFODT pays for features, and how soon it recovers from drifts
      bci-figure5   BOCT and BOCT-AL on the toy problem of "Bayesian Credible Intervals"
      bci-figure6   the same beside C4.5 and Hoeffding's bound on real data (--datasets)
      cdt-figure3   accuracy against leaves on random trees
      cdt-figure4   performance against leaves on real data (--datasets)
      cdt-figure5   query strategies against the share of labels (--datasets)
      cdt-table1    the real data sets of "Confidence Decision Trees" (--datasets)
      calibration          errors of probabilities and coverage of sets, at 10 % of the labels
      drift-detectors      delay, misses and false alarms of all detectors
      drift-inputs  false alarms and delays of the input detector, gain of its labels
      lft-balance   error by class on Balance Scale, of "Learning Forests of Trees"
      lft-electricity      last day, last week and online error (--datasets)
      lft-learning-curves  UFFT's three kinds of leaves and C4.5 on Waveform and LED
      lft-noise     wrong labels in training
      lft-order     13 permutations of the training records
      lft-sea       SEA concepts with and without detection (--datasets)
      vfs-table1    the streams of "Speeding up VFDT"
      vfs-table2    split attempts, delay, time and accuracy of VFDT, OSM and IMAC
      vfs-efdt      EFDT with and without IMAC
      vfs-figure1   time against the number of attributes and of records

    \b
    [bold]Examples[/bold]
      grove experiment vfs-table2 --quick
      grove experiment vfs-figure1 --jobs 4 --output results
    """
    from streamapp.cli.progress import rows_progress
    from streamapp.lab.experiments.base import names
    from streamapp.lab.experiments.conduct import conduct, hours_of
    from streamapp.settings.needs import install_line, missing

    if name not in names():
        message = f"unknown experiment {name!r}; known: {', '.join(names())}"
        raise UsageError(message)
    if quick and size not in (None, "quick"):
        message = f"--quick is --size quick; it cannot be given with --size {size}"
        raise UsageError(message)
    chosen = "quick" if quick else size or "medium"
    if (hours := hours_of(name, chosen)) is not None:
        typer.echo(f"grove: {name} --size {chosen} takes about {hours:g} hours of one core", err=True)
    if missing("experiments"):
        typer.echo(
            "grove: no chart is drawn: matplotlib is not installed; for charts, end this (Ctrl-C), install "
            f"with: {install_line('experiments')}, and give the command again: cells that are done are kept",
            err=True,
        )
    with rows_progress("Running", None, shown=True) as advance:
        report = conduct(
            name, chosen, output, data=data, jobs=jobs, fresh=fresh, advance=advance, outdated=say_outdated
        )
    if as_json:
        typer.echo(json.dumps({"experiment": name, "size": chosen, "tables": report.tables}))
        return
    for table, lines in report.tables.items():
        typer.echo(f"{table}:")
        for row in as_columns(lines):
            typer.echo(row)
    typer.echo(f"written to {output / f'{name}-{chosen}'}")


def say_outdated(cells: int) -> None:
    """Report that cells in the folder were run by other code and are run again."""
    typer.echo(f"grove: cells that other code has run are run again: {cells}", err=True)


def as_columns(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """The lines of a table as text with aligned columns."""
    if not lines:
        return []
    cells = [[str(key) for key in lines[0]], *[[str(value) for value in line.values()] for line in lines]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
