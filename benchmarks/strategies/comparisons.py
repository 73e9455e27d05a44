"""Differences between two strategies on the same rows: means, standard errors, wins and losses."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.strategies.runs import Outcome

Measure = Callable[[Outcome], float]


@dataclass(frozen=True)
class Mean:
    """A mean with its standard error; NaN for a single value."""

    value: float
    error: float

    @staticmethod
    def of(values: Sequence[float]) -> Mean:
        """Take the mean of values that are independent of each other."""
        spread = statistics.stdev(values) if len(values) > 1 else math.nan
        return Mean(statistics.fmean(values), spread / math.sqrt(len(values)))

    def __str__(self) -> str:
        return f"{self.value:+.2f} ± {self.error:.2f}"


@dataclass(frozen=True)
class Gains:
    """Points by which a strategy is above another, by stream and seed, in the same order of seeds."""

    points: Mapping[str, Sequence[float]]

    @property
    def by_stream(self) -> dict[str, Mean]:
        return {stream: Mean.of(values) for stream, values in self.points.items()}

    @property
    def mean(self) -> Mean:
        """The mean over the streams; its error is over the seeds, for these streams."""
        return Mean.of([statistics.fmean(values) for values in zip(*self.points.values(), strict=True)])

    @property
    def above(self) -> list[str]:
        """The streams above zero."""
        return [stream for stream, mean in self.by_stream.items() if mean.value > 0.0]

    @property
    def wins(self) -> list[str]:
        """The streams above zero by more than two standard errors."""
        return [s for s, mean in self.by_stream.items() if mean.value > 0.0 and mean.value > 2.0 * mean.error]

    @property
    def losses(self) -> list[str]:
        return self.below(0.0)

    def below(self, level: float) -> list[str]:
        """Return the streams that are below a level by more than two standard errors."""
        return [s for s, mean in self.by_stream.items() if level - mean.value > 2.0 * mean.error]


def points_between(
    runs: Mapping[str, Sequence[Outcome]], others: Mapping[str, Sequence[Outcome]], measure: Measure
) -> Gains:
    """Return what the runs are above the others in points of a measure, on the streams that both have."""
    return Gains(
        {
            stream: [
                100.0 * (measure(run) - measure(other))
                for run, other in zip(runs[stream], others[stream], strict=True)
            ]
            for stream in runs
            if stream in others
        }
    )


def accuracy(outcome: Outcome) -> float:
    return outcome.measures.accuracy


def last_fifth(outcome: Outcome) -> float:
    return outcome.measures.last_fifth


def kappa(outcome: Outcome) -> float:
    return outcome.measures.kappa


def f1(outcome: Outcome) -> float:
    return outcome.measures.f1


def coverage(outcome: Outcome) -> float:
    return outcome.sets.coverage


def single_sets(outcome: Outcome) -> float:
    return outcome.sets.single


def single_hits(outcome: Outcome) -> float:
    return outcome.sets.hits
