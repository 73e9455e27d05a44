"""Bounded numbers: types of options whose numbers have bounds."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TypeVar

_Number = TypeVar("_Number", int, float)


def number_within(
    of: Callable[[str], _Number], least: _Number, most: _Number | None = None
) -> Callable[[str], _Number]:
    """Return the type of an option: a finite number of at least `least` and at most `most`, if it is given.

    argparse prints the message of its ArgumentTypeError together with the name of the option.
    """

    def parse(text: str) -> _Number:
        try:
            value = of(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} must be a number") from None
        if most is None:
            if not least <= value < math.inf:
                raise argparse.ArgumentTypeError(f"{text} must be at least {least} and finite")
        elif not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} must be from {least} to {most}")
        return value

    return parse
