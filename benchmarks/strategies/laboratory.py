"""All runs that a comparison takes, by stream, in up to two processes."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.datasets import MissingDatasetError
from benchmarks.strategies.runs import Outcome, Setting, outcome
from benchmarks.strategies.streams import open_stream

NICENESS = 10


@dataclass(frozen=True)
class Draw:
    """Which rows of a stream are taken: one run of every trial for each seed."""

    seeds: tuple[int, ...]
    records: int | None = None
    permuted: bool = False


class Trial(NamedTuple):
    """A strategy on a stream under a setting; it is run with every seed of the draw."""

    stream: str
    setting: Setting
    strategy: str
    draw: Draw


class Finished(NamedTuple):
    """What a batch came to: the outcomes of each trial by seed, or the reason why the stream is missing."""

    outcomes: Mapping[Trial, list[Outcome]]
    missing: str


def perform(trials: Iterable[Trial], processes: int) -> tuple[Results, list[str]]:
    """Run the trials, each once; return the results, and a line for each stream that is left out."""
    batches: dict[tuple[str, Draw], dict[Trial, None]] = {}
    for trial in trials:
        batches.setdefault((trial.stream, trial.draw), {})[trial] = None
    outcomes: dict[Trial, list[Outcome]] = {}
    missing = []
    for finished in _map(run_batch, [list(batch) for batch in batches.values()], processes):
        outcomes |= finished.outcomes
        missing += [finished.missing] if finished.missing else []
    return Results(outcomes), list(dict.fromkeys(missing))


@dataclass(frozen=True)
class Results:
    """Outcomes by trial, one for each seed."""

    outcomes: Mapping[Trial, list[Outcome]]

    def of(
        self, streams: Iterable[str], setting: Setting, strategy: str, draw: Draw
    ) -> dict[str, list[Outcome]]:
        """Return by stream the outcomes of a strategy; streams that were left out are not there."""
        return {
            stream: self.outcomes[trial]
            for stream in streams
            if (trial := Trial(stream, setting, strategy, draw)) in self.outcomes
        }


def run_batch(batch: list[Trial]) -> Finished:
    """Run trials of one stream and draw with all seeds."""
    stream, draw = batch[0].stream, batch[0].draw
    outcomes: dict[Trial, list[Outcome]] = {trial: [] for trial in batch}
    for seed in draw.seeds:
        try:
            rows = open_stream(stream, seed, draw.records, permuted=draw.permuted)
        except MissingDatasetError as error:
            return Finished({}, f"{stream} is left out: {error}")
        for trial, runs in outcomes.items():
            runs.append(outcome(rows, trial.setting, trial.strategy, seed))
    print(f"{stream}: {len(batch)} trials, {len(draw.seeds)} seeds", file=sys.stderr, flush=True)
    return Finished(outcomes, "")


def _map(
    function: Callable[[list[Trial]], Finished], batches: list[list[Trial]], processes: int
) -> Iterator[Finished]:
    if processes == 1 or len(batches) == 1:
        yield from map(function, batches)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, os.nice, (NICENESS,)) as pool:
        yield from pool.map(function, batches)
