"""Delays: the commit interval and the utilisation of a core at which 99 of 100 answers are in time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from streamapp.errors import StreamappError
from streamapp.tools.sizing.calculation_steps import number as n
from streamapp.tools.sizing.calculation_steps import step
from streamapp.tools.sizing.measured_costs import Costs
from streamapp.tools.sizing.workload import Workload

MOST_USE: Final = 0.7
"""Share of a core that a plan uses at most: the rest is for snapshots, bursts, and a restart's backlog."""
LEAST_USE: Final = 0.3
"""Below this share, more idle cores hardly shorten the delay."""
COMMIT_MS: Final = 100.0
"""Commit interval at least once, the default: answers do not wait for it."""
MOST_COMMIT_MS: Final = 500.0
"""Longest planned commit interval, because outputs are held in memory until the commit."""


class LatencyError(StreamappError):
    """No number of workers answers as fast as demanded."""


@dataclass(frozen=True)
class Delay:
    """The commit interval and the share of a core that a worker may use, chosen by the demanded p99."""

    commit_ms: float
    use: float
    steps: list[str]


def delay_of(costs: Costs, workload: Workload) -> Delay:
    """Return the longest commit interval, then the highest utilisation, that keep the demanded p99.

    The model is p99 = interval + rest ÷ (1 - utilisation): the rest, measured on an idle core, grows with the
    waiting for the core. At least once, the interval is the time between two rounds. Raises LatencyError.
    """
    is_exact = workload.guarantee == "exactly_once"
    rest = costs.exactly_once_ms if is_exact else costs.at_least_once_ms
    waits = "commit interval" if is_exact else "time between two rounds"
    interval = costs.pace_ms
    if is_exact:
        longest = workload.p99_ms - rest / (1.0 - MOST_USE)
        interval = max(costs.least_commit_ms, min(MOST_COMMIT_MS, math.floor(longest)))
    room = workload.p99_ms - interval
    use = min(MOST_USE, 1.0 - rest / room) if room > 0 else 0.0
    if use < LEAST_USE:
        raise LatencyError(_refusal(costs, workload))
    steps = [
        step(
            f"p99 with a {waits} of {n(interval)} ms at {n(use)} of a core",
            f"{n(interval)} + {n(rest)} ÷ (1 - {n(use)})",
            interval + rest / (1.0 - use),
            f"ms (demanded: at most {n(workload.p99_ms)} ms)",
        )
    ]
    return Delay(interval if is_exact else COMMIT_MS, use, steps)


def least_p99(costs: Costs, guarantee: str) -> float:
    """Return the shortest p99 in ms that a plan can promise."""
    if guarantee == "exactly_once":
        return costs.least_commit_ms + costs.exactly_once_ms / (1.0 - LEAST_USE)
    return costs.pace_ms + costs.at_least_once_ms / (1.0 - LEAST_USE)


def _refusal(costs: Costs, workload: Workload) -> str:
    nearest = math.ceil(least_p99(costs, workload.guarantee))
    words = workload.guarantee.replace("_", " ")
    message = (
        f"--p99 {workload.p99_ms:g} cannot be met {words}, with any number of workers: "
        f"the shortest is {nearest} ms"
    )
    other = math.ceil(least_p99(costs, "at_least_once"))
    if workload.guarantee == "exactly_once" and other <= workload.p99_ms:
        message += f"; --guarantee at_least_once reaches {other} ms, but may repeat answers after a failure"
    return message
