"""Label delay: a number of records or seconds, fixed or random."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from topics.draws import Draw, uniform

_TEXT = re.compile(r"(~?)\s*([0-9]+(?:\.[0-9]*)?)\s*(records?|ms|s|min|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Delay:
    """A delay of labels.

    `amount` is the delay, or its mean if it is random. `unit` is `records` (rows of the stream) or `seconds`.
    A random delay is drawn for each row from the geometric (records) or the exponential distribution
    (seconds).
    """

    amount: float = 0.0
    unit: Literal["records", "seconds"] = "records"
    random: bool = False

    def __post_init__(self) -> None:
        """Refuse an amount that is not a valid delay."""
        if not 0 <= self.amount < float("inf"):
            message = f"delay={self.amount} must be at least 0"
            raise ValueError(message)
        if self.unit == "records" and not self.random and self.amount != int(self.amount):
            message = f"delay={self.amount} records must be a whole number"
            raise ValueError(message)

    @classmethod
    def parse(cls, text: str) -> Delay:
        """Return the delay that a text describes.

        >>> Delay.parse("200"), Delay.parse("~30s")
        (Delay(amount=200.0, unit='records', random=False), Delay(amount=30.0, unit='seconds', random=True))
        """
        match = _TEXT.fullmatch(text.strip())
        if not match:
            message = (
                f"delay={text!r} must be a number of records (200) or a time (30s, 250ms, 5min, 2h); "
                f"with ~ before it the mean of random delays (~30s)"
            )
            raise ValueError(message)
        tilde, amount, unit = match.groups()
        if unit in _SECONDS:
            return cls(float(amount) * _SECONDS[unit], "seconds", bool(tilde))
        return cls(float(amount), "records", bool(tilde))

    def draw(self, seed: int, stream: Draw, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the delay of each of n rows, whole numbers for a delay in records: float64[n]."""
        if not self.random or self.amount == 0:
            return np.full(len(rows), float(self.amount))
        survival = np.log1p(-uniform(seed, stream, rows))  # log of 1 - u, u in [0, 1)
        if self.unit == "seconds":
            return -self.amount * survival
        drawn: npt.NDArray[np.float64] = np.floor(survival / np.log1p(-1 / (self.amount + 1)))
        return drawn
