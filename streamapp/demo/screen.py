"""Demo screen: the live table and the summary."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from streamapp.demo.demo_models import DemoModel
from streamapp.demo.tally import ModelTally, Truth
from streamapp.demo.watch import Watch

RATE_SECONDS = 3.0
LINE_SECONDS = 5.0
WIDE = 120  # columns without a terminal


@dataclass(frozen=True)
class DemoSummary:
    """The output of `--json`."""

    instances: int
    predictions: int
    labels_requested: int
    labels_learned: int
    accuracy: float
    records_per_second: float
    drift_alerts: int
    dead_letters: int
    seconds: float
    models: dict[str, dict[str, float]]
    """By model: accuracy of its trained answers, in all, in the first and in the last fifth; and the number
    of answers before its first label (``untrained``)."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class FeatureSummary:
    """The output of `--features --json`; a feature costs 1 if the schema gives no cost."""

    instances: int
    predictions: int
    features_requested: int
    features_available: int
    """Requests that a model would have made if it had bought every feature for every prediction."""
    cost: float
    dead_letters: int
    accuracy: float
    seconds: float
    models: dict[str, dict[str, float]]
    """By model: its cost for each record, and its accuracy."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Speed:
    """Records per second over the last few seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def now(self, count: int) -> float:
        moment = time.monotonic()
        self._seen.append((moment, count))
        while self._seen[0][0] < moment - RATE_SECONDS:
            self._seen.popleft()
        since, before = self._seen[0]
        return (count - before) / (moment - since) if moment > since else 0.0


class Display:
    """The output of the demo: steps, live table and summary; if `quiet`, only steps, on standard error."""

    def __init__(self, quiet: bool = False, features: bool = False, steps_apart: bool = False) -> None:
        """steps_apart: steps go to standard error without `quiet`, too."""
        self._table_of = features_table if features else models_table
        self._console = Console(quiet=quiet)
        if not self._console.is_terminal and "COLUMNS" not in os.environ:
            self._console.width = WIDE
        self._steps = Console(stderr=True) if quiet or steps_apart else self._console
        self._steps_or_output = self._steps if quiet else self._console
        self._live: Live | None = None
        self._speed = Speed()
        self._total = 0
        self._told = 0.0

    def say(self, step: str) -> None:
        self._steps.print(_dim(step), highlight=False)

    def head(self, line: str) -> None:
        """Show a line that a person needs, on the output; if `quiet`, on standard error."""
        self._steps_or_output.print(Text(line, style="bold"), highlight=False, soft_wrap=True)

    def note(self, line: str) -> None:
        """Show a line that is not a step."""
        self._steps.print(Text(line, style="dim"), highlight=False)

    @contextmanager
    def waiting(self, step: str) -> Iterator[None]:
        """Show the name of a long step and, on a terminal, that it goes on."""
        if not self._steps.is_terminal:
            self.say(step)
            yield
            return
        with self._steps.status(_dim(step)):
            yield

    @contextmanager
    def live(self, watch: Watch, total: int) -> Iterator[None]:
        """Show the table until the block ends; the last one stays on the screen."""
        self._total = total
        if not self._console.is_terminal:
            yield
            self._console.print(self._models(watch))
            return
        with Live(console=self._console, refresh_per_second=4) as self._live:
            yield

    def update(self, watch: Watch, lag: int) -> None:
        """Show the present state; without a terminal, one line every few seconds."""
        speed = self._speed.now(watch.answered)
        if self._live is not None:
            self._live.update(self._table(watch, speed, lag))
        elif time.monotonic() - self._told > LINE_SECONDS:
            self._told = time.monotonic()
            self._console.print(self._line(watch, speed, lag), soft_wrap=True, highlight=False)

    def summary(self, summary: DemoSummary | FeatureSummary) -> None:
        if isinstance(summary, FeatureSummary):
            self._console.print(
                f"{summary.predictions:,} of {summary.instances:,} records answered in "
                f"{summary.seconds:.1f} s; "
                f"{summary.features_requested:,} of {summary.features_available:,} features requested, "
                f"cost {summary.cost:,.0f}; {summary.dead_letters:,} dead letters",
                soft_wrap=True,
                highlight=False,
            )
            return
        self._console.print(
            f"{summary.predictions:,} of {summary.instances:,} records answered in {summary.seconds:.1f} s "
            f"({summary.records_per_second:,.0f} records/s); {summary.labels_requested:,} labels requested, "
            f"{summary.labels_learned:,} learned; {summary.dead_letters:,} dead letters",
            soft_wrap=True,
            highlight=False,
        )
        untrained = sum(model["untrained"] for model in summary.models.values())
        self._console.print(
            f"{untrained:,} records were answered before the first label of their model; "
            "they do not count in the accuracies",
            soft_wrap=True,
            highlight=False,
        )

    def _table(self, watch: Watch, speed: float, lag: int) -> RenderableType:
        bar = ProgressBar(total=self._total, completed=watch.answered, width=60)
        return Group("", self._models(watch), "", bar, Text(self._line(watch, speed, lag), style="dim"))

    def _models(self, watch: Watch) -> Table:
        return self._table_of(watch.shown, watch.models, watch.truth)

    def _line(self, watch: Watch, speed: float, lag: int) -> str:
        return (
            f"{watch.answered:,} of {self._total:,} answered   "
            f"{speed:,.0f} records/s   "
            f"lag {lag:,}   dead letters {watch.dead_letters:,}"
        )


def _dim(step: str) -> Text:
    """Return a step without markup: rich would read brackets in addresses and names as markup."""
    return Text(f"{step} …", style="dim")


def models_table(models: Sequence[DemoModel], tallies: Mapping[str, ModelTally], truth: Truth) -> Table:
    """The models side by side, below a baseline without a model; at most 80 columns wide."""
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column("\nmodel", no_wrap=True)
    table.add_column("\nasks for")
    for title in (
        "\nanswered",
        "\nasked",
        "\nshare",
        "\naccuracy",
        "first\nfifth",
        "last\nfifth",
        "\ndrifts",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    base = (
        truth.base_rate(),
        truth.base_rate(slice(truth.fifth)),
        truth.base_rate(slice(-truth.fifth, None)),
    )
    rates = [f"{rate:.1%}" for rate in base]
    table.add_row("majority class", "nothing", f"{truth.rows:,}", "0", "0.0%", *rates, "", style="dim")
    for model in models:
        tally = tallies[model.key]
        share = tally.asked / tally.answered if tally.answered else 0.0
        table.add_row(
            Text(model.key, style="bold"),
            Text(model.asks),
            f"{tally.answered:,}",
            f"{tally.asked:,}",
            f"{share:.1%}",
            f"{tally.accuracy:.1%}",
            f"{tally.first_accuracy:.1%}",
            f"{tally.last_accuracy:.1%}",
            str(tally.drifts),
        )
    return table


def features_table(models: Sequence[DemoModel], tallies: Mapping[str, ModelTally], truth: Truth) -> Table:
    """The cost of each model beside its accuracy; the first row is a baseline without a model."""
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column("\nmodel", no_wrap=True)
    table.add_column("\nbuys")
    for title in (
        "\nanswered",
        "\nbought",
        "\nshare",
        "cost of\na record",
        "\naccuracy",
        "first\nfifth",
        "last\nfifth",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    parts = (slice(None), slice(truth.fifth), slice(-truth.fifth, None))
    rates = [f"{truth.base_rate(part):.1%}" for part in parts]
    table.add_row("majority class", "nothing", f"{truth.rows:,}", "0", "0.0%", "0.00", *rates, style="dim")
    for model in models:
        tally = tallies[model.key]
        most = tally.answered * truth.features
        table.add_row(
            Text(model.key, style="bold"),
            Text(model.asks),
            f"{tally.answered:,}",
            f"{tally.bought:,}",
            f"{tally.bought / most if most else 0.0:.1%}",
            f"{tally.cost / tally.answered if tally.answered else 0.0:.2f}",
            f"{tally.accuracy:.1%}",
            f"{tally.first_accuracy:.1%}",
            f"{tally.last_accuracy:.1%}",
        )
    return table
