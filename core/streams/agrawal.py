"""Agrawal's loan applicants (Agrawal, Imielinski and Swami 1993) with MOA's perturbation."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import count, flag, number
from core.schema.schema import Attribute, Schema
from core.streams import _java
from core.streams.base import Generator, Writer

SALARY: Final = 0
COMMISSION: Final = 1
AGE: Final = 2
ELEVEL: Final = 3
CAR: Final = 4
ZIPCODE: Final = 5
HVALUE: Final = 6
HYEARS: Final = 7
LOAN: Final = 8

# An attempt at a record uses 16 draws: 0..8 make the attributes, 9..14 perturb them.
_ATTEMPT: Final = 16
_PERTURB: Final = 9


@dataclass(frozen=True, slots=True)
class Plugin(Generator):
    """Nine attributes of an applicant; ``function`` 1 to 10 selects the rule for class 0 (group A).

    Functions 1 to 6 use bands of age, salary, education and loan, 7 to 10 the applicant's disposable income.
    After labelling, every number is moved by up to ``perturbation`` of its range. House values are cut at
    135,000 as in MOA, so that the attribute carries almost no information. ``balanced`` alternates the
    classes.
    """

    function: int = count(1, at_least=1, at_most=10)
    perturbation: float = number(0.05, at_least=0.0, at_most=1.0)
    balanced: bool = flag(False)

    @property
    def schema(self) -> Schema:
        """Six numeric and three nominal attributes, two classes."""
        return _schema()

    def writer(self) -> Writer:
        how = (self.function, self.perturbation, self.balanced)
        if self.rng == "java":
            random = _java.seeded(self.seed)
            return lambda first, x, y: _draw(random, *how, first, x, y)
        key = rng.stream_key(self.seed, rng.GENERATOR_RECORD)
        return lambda first, x, y: _count(key, *how, first, x, y)


@functools.cache
def _schema() -> Schema:
    attributes = [
        Attribute("salary"),
        Attribute("commission"),
        Attribute("age"),
        Attribute("elevel", "nominal", tuple(f"level{i}" for i in range(5))),
        Attribute("car", "nominal", tuple(f"car{i + 1}" for i in range(20))),
        Attribute("zipcode", "nominal", tuple(f"zipcode{i + 1}" for i in range(9))),
        Attribute("hvalue"),
        Attribute("hyears"),
        Attribute("loan"),
    ]
    return Schema.of(attributes, ("groupA", "groupB"))


@kernel
def _is_between(amount: float, low: float, high: float) -> bool:
    """Return whether an amount lies between two ends given in thousands."""
    return 1000.0 * low <= amount <= 1000.0 * high


@kernel
def _label(function: int, record: npt.NDArray[np.float64]) -> int:
    """Return the class of an applicant: 0 for group A."""
    in_a = _spare(function, record) > 0.0 if function >= 7 else _is_in_bands(function, record)
    return 0 if in_a else 1


@kernel
def _spare(function: int, record: npt.NDArray[np.float64]) -> float:
    """Return the rest of two thirds of the income after expenses: functions 7 to 10."""
    income = 2.0 * (record[SALARY] + record[COMMISSION]) / 3.0
    if function == 7:
        return float(income - record[LOAN] / 5.0 - 20000.0)
    if function == 8:
        return float(income - 5000.0 * record[ELEVEL] - 20000.0)
    if function == 9:
        return float(income - 5000.0 * record[ELEVEL] - record[LOAN] / 5.0 - 10000.0)
    equity = record[HVALUE] * (record[HYEARS] - 20.0) / 10.0 if record[HYEARS] >= 20.0 else 0.0
    return float(income - 5000.0 * record[ELEVEL] + equity / 5.0 - 10000.0)


@kernel
def _is_in_bands(function: int, record: npt.NDArray[np.float64]) -> bool:
    """Return whether functions 1 to 6, which differ by the band of age, put an applicant into group A."""
    salary, elevel = record[SALARY], record[ELEVEL]
    if function == 6:
        salary += record[COMMISSION]
    band = 0 if record[AGE] < 40.0 else 1 if record[AGE] < 60.0 else 2
    if function == 1:
        return bool(band != 1)
    if function in (2, 5, 6):
        if band == 0:
            is_usual = _is_between(salary, 50.0, 100.0)
        elif band == 1:
            is_usual = _is_between(salary, 75.0, 125.0)
        else:
            is_usual = _is_between(salary, 25.0, 75.0)
        if function != 5:
            return is_usual
        # The loan lies in one of three bands of 200,000, which overlap: from 100,000, 200,000 or 300,000 on.
        low = 100.0 * (band + 1 if is_usual else (band + 1) % 3 + 1)
        return _is_between(record[LOAN], low, low + 200.0)
    if function == 3:
        # Levels 0 and 1 when young, 1 to 3 in the middle, 2 to 4 when old.
        return bool(elevel <= 1.0 if band == 0 else 1.0 <= elevel <= 3.0 if band == 1 else elevel >= 2.0)
    if band == 0:
        return _is_between(salary, 25.0, 75.0) if elevel <= 1.0 else _is_between(salary, 50.0, 100.0)
    if band == 1:
        middle = 1.0 <= elevel <= 3.0
        return _is_between(salary, 50.0, 100.0) if middle else _is_between(salary, 75.0, 125.0)
    return _is_between(salary, 50.0, 100.0) if elevel >= 2.0 else _is_between(salary, 25.0, 75.0)


@kernel
def _perturbed(value: float, low: float, high: float, reach: float, share: float, u: float) -> float:
    """Return a value moved by up to ``share`` of its reach and cut to [low, high]."""
    moved = value + reach * (2.0 * (u - 0.5)) * share
    return min(max(moved, low), high)


@kernel("void(uint64, int64, float64, boolean, int64, float64[:, ::1], int32[::1])")
def _count(
    key,
    function: int,
    perturbation: float,
    balanced: bool,
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, 9], y int32[m] in the counter flavour."""
    for row in range(y.size):
        record = x[row]
        draw = (first + row) << rng.DRAW_BITS
        while True:
            record[SALARY] = 20000.0 + 130000.0 * rng.uniform(key, draw)
            commission = 10000.0 + 65000.0 * rng.uniform(key, draw + 1)
            record[COMMISSION] = 0.0 if record[SALARY] >= 75000.0 else commission
            record[AGE] = 20 + rng.integer(key, draw + 2, 61)
            record[ELEVEL] = rng.integer(key, draw + 3, 5)
            record[CAR] = rng.integer(key, draw + 4, 20)
            record[ZIPCODE] = rng.integer(key, draw + 5, 9)
            record[HVALUE] = (9.0 - record[ZIPCODE]) * 100000.0 * (0.5 + rng.uniform(key, draw + 6))
            record[HYEARS] = 1 + rng.integer(key, draw + 7, 30)
            record[LOAN] = rng.uniform(key, draw + 8) * 500000.0
            label = _label(function, record)
            if not balanced or label != (first + row) & 1:
                break
            draw += _ATTEMPT
        y[row] = label
        if perturbation > 0.0:
            draw += _PERTURB
            u = rng.uniform(key, draw)
            record[SALARY] = _perturbed(record[SALARY], 20000.0, 150000.0, 130000.0, perturbation, u)
            if record[COMMISSION] > 0.0:
                u = rng.uniform(key, draw + 1)
                record[COMMISSION] = _perturbed(
                    record[COMMISSION], 10000.0, 75000.0, 65000.0, perturbation, u
                )
            u = rng.uniform(key, draw + 2)
            record[AGE] = math.floor(_perturbed(record[AGE], 20.0, 80.0, 60.0, perturbation, u) + 0.5)
            u = rng.uniform(key, draw + 3)
            reach = (9.0 - record[ZIPCODE]) * 100000.0
            record[HVALUE] = _perturbed(record[HVALUE], 0.0, 135000.0, reach, perturbation, u)
            u = rng.uniform(key, draw + 4)
            record[HYEARS] = math.floor(_perturbed(record[HYEARS], 1.0, 30.0, 29.0, perturbation, u) + 0.5)
            u = rng.uniform(key, draw + 5)
            record[LOAN] = _perturbed(record[LOAN], 0.0, 500000.0, 500000.0, perturbation, u)


@kernel("void(int64[::1], int64, float64, boolean, int64, float64[:, ::1], int32[::1])")
def _draw(
    random: npt.NDArray[np.int64],
    function: int,
    perturbation: float,
    balanced: bool,
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, 9], y int32[m] with MOA's draws: a high salary draws no commission."""
    for row in range(y.size):
        record = x[row]
        while True:
            record[SALARY] = 20000.0 + 130000.0 * _java.double(random)
            record[COMMISSION] = 0.0
            if record[SALARY] < 75000.0:
                record[COMMISSION] = 10000.0 + 65000.0 * _java.double(random)
            record[AGE] = 20 + _java.integer(random, 61)
            record[ELEVEL] = _java.integer(random, 5)
            record[CAR] = _java.integer(random, 20)
            record[ZIPCODE] = _java.integer(random, 9)
            record[HVALUE] = (9.0 - record[ZIPCODE]) * 100000.0 * (0.5 + _java.double(random))
            record[HYEARS] = 1 + _java.integer(random, 30)
            record[LOAN] = _java.double(random) * 500000.0
            label = _label(function, record)
            if not balanced or label != (first + row) & 1:
                break
        y[row] = label
        if perturbation > 0.0:
            u = _java.double(random)
            record[SALARY] = _perturbed(record[SALARY], 20000.0, 150000.0, 130000.0, perturbation, u)
            if record[COMMISSION] > 0.0:
                u = _java.double(random)
                record[COMMISSION] = _perturbed(
                    record[COMMISSION], 10000.0, 75000.0, 65000.0, perturbation, u
                )
            u = _java.double(random)
            record[AGE] = math.floor(_perturbed(record[AGE], 20.0, 80.0, 60.0, perturbation, u) + 0.5)
            u = _java.double(random)
            reach = (9.0 - record[ZIPCODE]) * 100000.0
            record[HVALUE] = _perturbed(record[HVALUE], 0.0, 135000.0, reach, perturbation, u)
            u = _java.double(random)
            record[HYEARS] = math.floor(_perturbed(record[HYEARS], 1.0, 30.0, 29.0, perturbation, u) + 0.5)
            u = _java.double(random)
            record[LOAN] = _perturbed(record[LOAN], 0.0, 500000.0, 500000.0, perturbation, u)
