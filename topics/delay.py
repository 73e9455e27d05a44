"""Label delay: a number of records or seconds, fixed or drawn from a distribution."""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal, cast

import numpy as np
import numpy.typing as npt

from topics.draws import Draw, uniform

Unit = Literal["records", "seconds"]
Distribution = Literal["fixed", "exponential", "uniform", "lognormal"]

_NUMBER: Final = r"-?[0-9]+(?:\.[0-9]*)?"
_AMOUNT: Final = rf"({_NUMBER})\s*(records?|ms|s|min|m|h)?"
_FORMS: Final = {
    "fixed": (re.compile(_AMOUNT), "a number of records (200) or a time (30s, 250ms, 5min, 2h)"),
    "exponential": (re.compile(_AMOUNT), "exponential:MEAN, for example exponential:30s or ~30s"),
    "uniform": (
        re.compile(rf"{_AMOUNT}\s*-\s*{_AMOUNT}"),
        "uniform:LOW-HIGH, for example uniform:10-200 or uniform:10s-5min",
    ),
    "lognormal": (
        re.compile(rf"{_AMOUNT}\s*,\s*({_NUMBER})"),
        "lognormal:MEDIAN,SIGMA, for example lognormal:30s,1.5",
    ),
}
"""The text of a delay after the name of its distribution, and the form as messages show it."""

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_SMALLEST: Final = 2.0**-54
"""Half of the smallest step of a draw: the normal quantile of 0 is not finite."""
_SIGMA_MAX: Final = 10.0
_MOST: Final[dict[Unit, float]] = {"records": 1e12, "seconds": 3_155_760_000.0}
"""Longest delay, in seconds 100 years: timestamps in ms stay exact, and far from their limit."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A delay of labels, drawn for each row.

    `amount` and `spread` are the parameters of the distribution. `fixed`: the delay. `exponential`: the mean;
    a delay in records is drawn from the geometric distribution with this mean. `uniform`: the smallest and
    the largest delay, both of which are drawn. `lognormal`: the median, and the standard deviation of the
    logarithm; a delay in records is rounded. `unit` is `records` (rows of the stream) or `seconds`.
    """

    amount: float = 0.0
    unit: Unit = "records"
    distribution: Distribution = "fixed"
    spread: float = 0.0

    def __post_init__(self) -> None:
        """Refuse parameters that are not valid for the distribution."""
        ends = (self.amount, self.spread) if self.distribution == "uniform" else (self.amount,)
        _check_bounds(self.text, ends, self.unit)
        is_whole = self.amount == int(self.amount)
        if self.distribution == "uniform":
            is_whole = is_whole and self.spread == int(self.spread)
        if self.unit == "records" and self.distribution in ("fixed", "uniform") and not is_whole:
            message = f"delay={self.text} records must be a whole number"
            raise ValueError(message)
        if self.distribution == "uniform" and not self.amount <= self.spread:
            message = f"delay={self.text} must have a LOW that is at most its HIGH; exchange them"
            raise ValueError(message)
        if self.distribution == "lognormal" and self.amount == 0:
            message = f"delay={self.text} must have a MEDIAN above 0; without a delay write 0"
            raise ValueError(message)
        if self.distribution == "lognormal" and not 0 <= self.spread <= _SIGMA_MAX:
            message = (
                f"delay={self.text} must have a SIGMA from 0 to {_SIGMA_MAX:g}, the standard deviation of "
                "the logarithm; with 1.5, 95 in 100 delays are from a twentieth to twenty times the MEDIAN"
            )
            raise ValueError(message)

    @property
    def text(self) -> str:
        """The delay as `parse` reads it."""
        unit = "s" if self.unit == "seconds" else ""
        first, second = _plain(self.amount), _plain(self.spread)
        if self.distribution == "fixed":
            return f"{first}{unit}"
        after = {"exponential": "", "uniform": f"-{second}{unit}", "lognormal": f",{second}"}
        return f"{self.distribution}:{first}{unit}{after[self.distribution]}"

    @property
    def is_zero(self) -> bool:
        """Whether no label is delayed."""
        return self.amount == 0 and (self.distribution != "uniform" or self.spread == 0)

    @classmethod
    def parse(cls, text: str) -> Delay:
        """Return the delay that a text describes; `~30s` is short for `exponential:30s`.

        >>> Delay.parse("200"), Delay.parse("~30s")  # doctest: +NORMALIZE_WHITESPACE
        (Delay(amount=200.0, unit='records', distribution='fixed', spread=0.0),
         Delay(amount=30.0, unit='seconds', distribution='exponential', spread=0.0))
        """
        name, colon, numbers = text.strip().partition(":")
        if not colon:
            is_random = name.startswith("~")
            name, numbers = "exponential" if is_random else "fixed", name.removeprefix("~")
        match = None
        if name in _FORMS and (name != "fixed" or not colon):
            match = _FORMS[name][0].fullmatch(numbers.strip())
        if match is None:
            message = f"delay={text!r} must be {'; or '.join(form for _, form in _FORMS.values())}"
            raise ValueError(message)
        return cls._of(cast("Distribution", name), text, match.groups())

    @classmethod
    def _of(cls, distribution: Distribution, text: str, parts: tuple[str | None, ...]) -> Delay:
        """Return the delay of the parts of a text: its first number and unit, then the rest."""
        first, unit, *rest = parts
        if distribution == "uniform":
            unit = unit or rest[1]  # uniform:10-60s: the unit of HIGH is that of LOW
            if (unit in _SECONDS) != (rest[1] in _SECONDS):
                message = f"delay={text!r} must have both ends in records, or both in a unit of time"
                raise ValueError(message)
        kind: Unit = "seconds" if unit in _SECONDS else "records"
        amount = float(cast("str", first)) * _SECONDS.get(unit or "", 1.0)
        spread = float(rest[0]) if rest and rest[0] else 0.0
        if distribution == "uniform":
            spread *= _SECONDS.get(rest[1] or "", 1.0)
        _check_bounds(repr(text), (amount, spread) if distribution == "uniform" else (amount,), kind)
        return cls(amount, kind, distribution, spread)

    def draw(self, seed: int, stream: Draw, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the delay of each of n rows, whole numbers for a delay in records: float64[n].

        A row has the same delay in every batch. A longer one than any fixed delay is cut to that.
        """
        return np.minimum(self._drawn(seed, stream, rows), _MOST[self.unit])

    def _drawn(self, seed: int, stream: Draw, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        if self.distribution == "fixed" or self.is_zero:
            return np.full(len(rows), float(self.amount))
        u, in_seconds = uniform(seed, stream, rows), self.unit == "seconds"
        if self.distribution == "exponential":
            survival = np.log1p(-u)  # log of 1 - u, u in [0, 1)
            if in_seconds:
                return -self.amount * survival
            drawn: npt.NDArray[np.float64] = np.floor(survival / np.log1p(-1 / (self.amount + 1)))
            return drawn
        if self.distribution == "uniform":
            if in_seconds:
                return self.amount + (self.spread - self.amount) * u
            return self.amount + np.floor((self.spread - self.amount + 1) * u)
        quantile = NormalDist().inv_cdf
        z = np.array([quantile(share) for share in np.maximum(u, _SMALLEST).tolist()], dtype=np.float64)
        drawn = self.amount * np.exp(self.spread * z)
        return drawn if in_seconds else np.rint(drawn)


def _plain(number: float) -> str:
    """Return a number without an exponent, which `parse` would not read."""
    return np.format_float_positional(number, trim="-")


def _check_bounds(shown: str, numbers: tuple[float, ...], unit: Unit) -> None:
    """Refuse delays that are negative or too long; shown: the delay as the message has it."""
    most = f"{_MOST[unit]:,.0f} {unit}" + (", 100 years" if unit == "seconds" else "")
    if not all(number >= 0 for number in numbers):
        message = f"delay={shown} must be at least 0; without a delay write 0"
        raise ValueError(message)
    if not all(number <= _MOST[unit] for number in numbers):
        message = f"delay={shown} must be at most {most}; labels that never come are a loss, not a delay"
        raise ValueError(message)
