"""Progress of long work, on standard error, so that standard output holds only results."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """A function that adds finished rows to the bar, and sets the total when it becomes known."""

    def __call__(self, rows: int, total: int | None = None) -> None: ...


def say_on_stderr(line: str) -> None:
    """Print a line of progress on standard error."""
    import typer

    typer.echo(f"grove: {line}", err=True)


def say_compiling() -> None:
    """Report the compiling of kernels, also without a terminal, because it takes long."""
    import typer

    from streamapp.worker.compile_ahead import TAKES, kernels_are_cold

    if kernels_are_cold():
        typer.echo(f"grove: compiling kernels (the first time: {TAKES})", err=True)


@contextmanager
def rows_progress(what: str, total: int | None, shown: bool = True) -> Iterator[Advance]:
    """A progress bar over rows with the time left (total None: with the number of rows so far)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    shown = shown and console.is_terminal  # elsewhere a bar would be an empty line
    with Progress(*columns, console=console, disable=not shown, transient=True) as progress:
        task = progress.add_task(what, total=total)

        def advance(rows: int, total: int | None = None) -> None:
            progress.update(task, advance=rows, total=total)

        yield advance


@contextmanager
def stoppable_progress(stop: Callable[[], None], what: str, *, shown: bool) -> Iterator[Advance]:
    """A progress bar over work that a signal stops; the caller reports finished rows, and the total."""
    from streamapp.cli.signals import on_stop

    seen = 0
    with on_stop(stop), rows_progress(what, None, shown) as bar:

        def so_far(rows: int, total: int | None = None) -> None:
            nonlocal seen
            bar(rows - seen, total)
            seen = rows

        yield so_far
