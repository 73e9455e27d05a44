"""Guarantees compared: the same systems over the same backlog, in turns."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.rig.measure import Pass
from benchmarks.rig.passes import Bench, Result, in_words, median
from benchmarks.rig.systems import System

Passes = list[tuple[Pass, float | None]]


def measure_guarantees(
    bench: Bench,
    systems: list[System],
    guarantees: list[str],
    repeats: int,
    keys: int,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Return one line for each guarantee and system: the median pass, beside the pass with the first
    guarantee.

    All passes are counted by the offsets that the group has committed. Each turn begins with another
    guarantee. The ratios are medians of ratios within a turn, because the machine's speed differs between
    turns.
    """
    benches = {}
    for guarantee in guarantees:
        options = replace(bench.options, guarantee=guarantee)
        benches[guarantee] = Bench(bench.cluster, bench.names, options)
        benches[guarantee].backlog = bench.backlog
    passes: dict[tuple[str, str], Passes] = {(g, s.name): [] for g in guarantees for s in systems}
    for number in range(repeats):
        shift = number % len(guarantees)
        for guarantee in guarantees[shift:] + guarantees[:shift]:
            for system in systems:
                one_pass = benches[guarantee].once(system, committed=True)
                passes[guarantee, system.name].append(one_pass)
                progress(
                    f"{system.name}, {guarantee}, pass {number + 1} of {repeats}: {in_words(one_pass[0])}"
                )
    return [
        line(median(benches[guarantee], name, keys, passes_of), passes_of, passes[guarantees[0], name], bench)
        for (guarantee, name), passes_of in passes.items()
    ]


def line(result: Result, passes: Passes, first: Passes, bench: Bench) -> dict[str, Any]:
    """Return the printed figures of a guarantee; `passes` holds its passes, `first` the passes to compare
    with.
    """
    pairs = [(here, there) for (here, _), (there, _) in zip(passes, first, strict=True)]
    return result.to_dict() | {
        "partitions": bench.backlog.partitions,
        "rate_ratio": round(statistics.median(h.rows_per_second / t.rows_per_second for h, t in pairs), 3),
        "cpu_ratio": round(statistics.median(h.cpu_per_million / t.cpu_per_million for h, t in pairs), 3),
    }
