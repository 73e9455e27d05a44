"""Points of the protocol: which runs a point takes, and what it demands of them."""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.strategies.comparisons import Gains, Measure, accuracy, points_between
from benchmarks.strategies.laboratory import Draw, Results, Trial
from benchmarks.strategies.runs import Outcome, Setting

RANDOM = "random"


class Demand(NamedTuple):
    """A rule for the gains of a point, in words and as a function."""

    words: str
    holds: Callable[[Gains], bool]


class Verdict(NamedTuple):
    """The result of a point: the measured figures, and the demands that they miss."""

    point: str
    measured: str
    missed: list[str]


@dataclass(frozen=True)
class Point(ABC):
    """A point has a name and a subject, and a verdict on the results of its trials."""

    name: str
    subject: str

    @abstractmethod
    def trials(self, draw: Draw) -> Iterator[Trial]:
        """Yield the runs that the point takes; ``draw`` is that of the whole protocol."""

    @abstractmethod
    def verdict(self, results: Results, draw: Draw) -> Verdict | None:
        """Judge the results; None if all streams of the point were left out."""


@dataclass(frozen=True)
class Paired(Point):
    """A strategy against another one on the same rows."""

    streams: Sequence[str]
    setting: Setting
    demands: Sequence[Demand]
    strategy: str = "ask"
    measure: Measure = accuracy
    other: str = RANDOM
    beside: Setting | None = None
    """The setting of the other strategy; None: the same."""

    def trials(self, draw: Draw) -> Iterator[Trial]:
        for stream in self.streams:
            yield Trial(stream, self.setting, self.strategy, draw)
            yield Trial(stream, self.beside or self.setting, self.other, draw)

    def gains(self, results: Results, draw: Draw) -> Gains:
        """Return the points of the strategy over the other one, on the streams that are there."""
        return points_between(
            results.of(self.streams, self.setting, self.strategy, draw),
            results.of(self.streams, self.beside or self.setting, self.other, draw),
            self.measure,
        )

    def verdict(self, results: Results, draw: Draw) -> Verdict | None:
        gains = self.gains(results, draw)
        if not gains.points:
            return None
        streams = ", ".join(f"{stream} {mean}" for stream, mean in gains.by_stream.items())
        measured = f"{gains.mean}, {len(gains.wins)}/{len(gains.losses)} of {len(gains.points)} ({streams})"
        missed = [demand.words for demand in self.demands if not demand.holds(gains)]
        return Verdict(self.name, measured, missed)


@dataclass(frozen=True)
class Savings(Point):
    """Labels at which a strategy reaches the accuracy that random requests have at the largest limit."""

    streams: Sequence[str]
    settings: Sequence[Setting]
    """Ascending in the limit, the same otherwise."""
    median: float
    """The largest median over the streams that passes."""
    strategy: str = "ask"

    def trials(self, draw: Draw) -> Iterator[Trial]:
        for stream in self.streams:
            for setting in self.settings:
                yield Trial(stream, setting, self.strategy, draw)
            yield Trial(stream, self.settings[-1], RANDOM, draw)

    def verdict(self, results: Results, draw: Draw) -> Verdict | None:
        needed = {}
        for stream, runs in results.of(self.streams, self.settings[-1], RANDOM, draw).items():
            curve = [
                (
                    setting.limit,
                    _mean_accuracy(results.outcomes[Trial(stream, setting, self.strategy, draw)]),
                )
                for setting in self.settings
            ]
            needed[stream] = limit_for(_mean_accuracy(runs), curve)
        if not needed:
            return None
        median = statistics.median(needed.values())
        streams = ", ".join(f"{stream} {_percent(limit)}" for stream, limit in needed.items())
        missed = [] if median <= self.median else [f"median ≤ {_percent(self.median)}"]
        return Verdict(self.name, f"median {_percent(median)} ({streams})", missed)


@dataclass(frozen=True)
class Spent(Point):
    """A strategy requests the labels that the budget grants, and is called for nearly all records."""

    streams: Sequence[str]
    setting: Setting
    strategy: str = "ask"
    within: float = 0.02

    def trials(self, draw: Draw) -> Iterator[Trial]:
        return (Trial(stream, self.setting, self.strategy, draw) for stream in self.streams)

    def verdict(self, results: Results, draw: Draw) -> Verdict | None:
        runs = results.of(self.streams, self.setting, self.strategy, draw)
        if not runs:
            return None
        asked = {stream: statistics.fmean(run.asked for run in of) for stream, of in runs.items()}
        refused = {stream: statistics.fmean(run.refused for run in of) for stream, of in runs.items()}
        limit = self.setting.limit
        missed = [
            f"{stream}: asked within {_percent(self.within)} of {_percent(limit)}, not {_percent(share)}"
            for stream, share in asked.items()
            if abs(share - limit) > self.within * limit
        ]
        missed += [
            f"{stream}: refused ≤ {_percent(self.within)}, not {_percent(share)}"
            for stream, share in refused.items()
            if share > self.within
        ]
        measured = (
            f"asked {_percent(min(asked.values()))} to {_percent(max(asked.values()))}, "
            f"refused at most {_percent(max(refused.values()))}"
        )
        return Verdict(self.name, measured, missed)


@dataclass(frozen=True)
class Covered(Point):
    """The 95 % interval of ``accuracy_unbiased`` covers the accuracy over all records often enough."""

    stream: str
    setting: Setting
    runs: int
    records: int
    at_least: float
    strategy: str = "ask"

    def trials(self, draw: Draw) -> Iterator[Trial]:
        yield self._trial(draw)

    def verdict(self, results: Results, draw: Draw) -> Verdict | None:
        runs = results.outcomes.get(self._trial(draw))
        if runs is None:
            return None
        share = statistics.fmean(run.covered for run in runs)
        missed = [] if share >= self.at_least else [f"≥ {_percent(self.at_least)}"]
        return Verdict(self.name, f"{_percent(share)} of {len(runs)} runs on {self.stream}", missed)

    def _trial(self, draw: Draw) -> Trial:
        first = draw.seeds[0]
        own = Draw(tuple(range(first, first + self.runs)), self.records)
        return Trial(self.stream, self.setting, self.strategy, own)


def limit_for(target: float, curve: Sequence[tuple[float, float]]) -> float:
    """Return the limit at which a curve of (limit, accuracy) reaches the target, infinity if it does not.

    The curve is made monotone, and is linear in the logarithm of the limit between its points; below the
    first point it is unknown, so that the first limit is the least answer.
    """
    limit, best = curve[0]
    if target <= best:
        return limit
    for following, value in curve[1:]:
        reached = max(best, value)
        if reached >= target:
            part = (target - best) / (reached - best)
            return math.exp(math.log(limit) + part * math.log(following / limit))
        limit, best = following, reached
    return math.inf


def _mean_accuracy(runs: Sequence[Outcome]) -> float:
    return statistics.fmean(accuracy(run) for run in runs)


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"
