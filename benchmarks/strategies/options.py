"""Types of the options of programs that compare strategies."""

from __future__ import annotations

import argparse

from benchmarks.bounded_numbers import number_within
from benchmarks.strategies.runs import STRATEGIES


def strategy_names(text: str) -> list[str]:
    """Return the strategies that a text names, separated by semicolons."""
    chosen = text.split(";")
    for name in chosen:
        if name not in STRATEGIES:
            raise argparse.ArgumentTypeError(f"{name!r} must be one of {'; '.join(STRATEGIES)}")
    return chosen


def label_limit(text: str) -> float:
    """Return the requests per record that a budget allows, above 0 and at most 1."""
    share = number_within(float, 0.0, 1.0)(text)
    if share == 0.0:
        message = f"{text} must be above 0: without labels no strategy is better than another"
        raise argparse.ArgumentTypeError(message)
    return share
