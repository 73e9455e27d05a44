"""Types of the options of programs that compare strategies."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

from benchmarks.strategies.runs import STRATEGIES

_Number = TypeVar("_Number", int, float)


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


def number_within(of: Callable[[str], _Number], least: _Number, most: _Number) -> Callable[[str], _Number]:
    """Return the type of an option: a number within bounds."""

    def parse(text: str) -> _Number:
        try:
            value = of(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} must be a number") from None
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} must be from {least} to {most}")
        return value

    return parse
