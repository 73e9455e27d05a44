"""Guarantees beside each other: the same worker over the same backlog, in turns."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.rig.measure import Pass
from benchmarks.rig.passes import Bench, Result, median
from benchmarks.rig.systems import OURS, WORKER

GUARANTEES = ("at_least_once", "exactly_once")
Passes = list[tuple[Pass, float | None]]


def measure_guarantees(
    bench: Bench, guarantees: list[str], repeats: int, keys: int, said: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return one line for each guarantee: the median pass, and how it stands to the first one.

    All are counted by the offsets that the group has committed. Each turn begins with another guarantee; the
    ratios are medians of what one turn showed, for a machine is not as fast in the next one.
    """
    benches = {}
    for guarantee in guarantees:
        options = replace(bench.options, guarantee=guarantee)
        benches[guarantee] = Bench(bench.cluster, bench.names, options)
        benches[guarantee].backlog = bench.backlog
    passes: dict[str, Passes] = {guarantee: [] for guarantee in guarantees}
    for number in range(repeats):
        shift = number % len(guarantees)
        for guarantee in guarantees[shift:] + guarantees[:shift]:
            passes[guarantee].append(benches[guarantee].once(WORKER, committed=True))
            cost = passes[guarantee][-1][0]
            said(f"{guarantee}, pass {number + 1} of {repeats}: {cost.rows_per_second:,.0f} rows/s")
    return [
        line(guarantee, median(bench, OURS, keys, found), found, passes[guarantees[0]], bench)
        for guarantee, found in passes.items()
    ]


def line(guarantee: str, result: Result, found: Passes, first: Passes, bench: Bench) -> dict[str, Any]:
    """Return what is printed of a guarantee; `found`: its passes, `first`: those it is compared with."""
    pairs = [(here, there) for (here, _), (there, _) in zip(found, first, strict=True)]
    return result.to_dict() | {
        "guarantee": guarantee,
        "partitions": bench.backlog.partitions,
        "rate_ratio": round(statistics.median(h.rows_per_second / t.rows_per_second for h, t in pairs), 3),
        "cpu_ratio": round(statistics.median(h.cpu_per_million / t.cpu_per_million for h, t in pairs), 3),
    }
