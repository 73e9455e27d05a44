"""Concept drift (Bifet et al. 2009): one stream replaces another along a sigmoid."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.errors import ParameterError
from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import number
from core.schema.schema import Schema
from core.streams import _java
from core.streams.base import SCHEME, Generator, Writer, parse_address

MOST_WIDTHS: Final = 100.0
"""Maximum of the width of a change, in records until the next one."""
SETTLED: Final = 10.0
"""Widths after which the sigmoid of a change is 1 to the last bit, and before which it is nearly 0."""


@dataclass(frozen=True, slots=True)
class Plugin(Generator):
    """Two streams: record c is from ``after`` with probability 1 / (1 + exp(-4 (c - position) / width)).

    Otherwise it is from ``before``; c counts from 1. Each stream continues where it stopped. Both are
    generators, or their addresses in brackets, and may be drifts, which count only their own records:
    ``gen:drift?before=(led)&after=(drift?before=(led?drift=3)&after=(led?drift=5)&position=9000)``. They use
    the flavour ``rng`` of the drift, and keep their seeds.

    With ``recurring`` above 0, ``before`` comes back that many records after each change to ``after``, and
    ``after`` as many records later, for ever: the chance of ``after`` is the sum of the sigmoids of all
    changes, with alternating signs (MOA's RecurrentConceptDriftStream).
    """

    before: Any = "sea"
    after: Any = "sea?function=3"
    position: float = number(100_000.0, at_least=0.0)
    width: float = number(1000.0, above=0.0)
    recurring: float = number(0.0, at_least=0.0)

    def __post_init__(self) -> None:
        """Open the two streams and compare their schemas."""
        Generator.__post_init__(self)
        if 0.0 < self.recurring < max(1.0, self.width / MOST_WIDTHS):
            msg = (
                f"recurring={self.recurring:g} must be 0, or at least 1 and at least a hundredth of "
                f"width={self.width:g}: the streams would only be mixed"
            )
            raise ParameterError(msg)
        for which in ("before", "after"):
            object.__setattr__(self, which, _opened(which, getattr(self, which), self.rng))
        if self.before.schema != self.after.schema:
            msg = f"after={self.after.name} must have the attributes and classes of before={self.before.name}"
            raise ParameterError(msg)

    @property
    def schema(self) -> Schema:
        """Attributes and classes of both streams."""
        schema: Schema = self.before.schema
        return schema

    def to_dict(self) -> dict[str, Any]:
        """Return name and options, with the options of the two streams nested."""
        body = Generator.to_dict(self)
        return body | {which: body[which].to_dict() for which in ("before", "after")}

    def writer(self) -> Writer:
        return _Writer(self)


class _Writer:
    """Draws the coins of a batch, and fills it with the resulting number of records of each stream."""

    def __init__(self, drift: Plugin) -> None:
        self._drift = drift
        self._streams = (drift.before, drift.after)
        self._writers = (drift.before.noisy_writer(), drift.after.noisy_writer())
        self._random = _java.seeded(drift.seed)
        self._key = rng.stream_key(drift.seed, rng.GENERATOR_DRIFT)
        self._position = self._taken = 0

    def __call__(self, first: int, x: npt.NDArray[np.float64], y: npt.NDArray[np.int32]) -> None:
        """Fill x float64[m, d] and y int32[m] with the records from ``first`` on."""
        if first != self._position:
            self._seek(first)
        coins = self._toss(first, len(y))
        later = int(np.count_nonzero(coins))
        for side, at, n in ((0, first - self._taken, len(y) - later), (1, self._taken, later)):
            if n:
                some_x, some_y = np.empty((n, x.shape[1])), np.empty(n, np.int32)
                self._writers[side](at, some_x, some_y)
                x[coins == side], y[coins == side] = some_x, some_y
        self._position, self._taken = first + len(y), self._taken + later

    def _toss(self, first: int, n: int) -> npt.NDArray[np.int8]:
        """Return the stream of each of n records from ``first`` on."""
        coins = np.empty(n, np.int8)
        how = (self._drift.position, self._drift.width, self._drift.recurring)
        if self._drift.rng == "java":
            _draw(self._random, *how, first, coins)
        else:
            _count(self._key, *how, first, coins)
        return coins

    def _seek(self, first: int) -> None:
        """Move to a record by counting the coins before it; the records are not generated."""
        self._taken = int(np.count_nonzero(self._toss(0, first)))


def _opened(which: str, source: Any, flavour: str) -> Generator:
    """Return a generator, given directly or by its address, in a flavour."""
    if isinstance(source, Generator):
        return dataclasses.replace(source, rng=flavour)
    if not isinstance(source, str):
        msg = f"{which}={source!r} must be a generator or its address, for example sea?function=2"
        raise ParameterError(msg)
    generator, n = parse_address(source if source.startswith(SCHEME) else SCHEME + source)
    if n is not None:
        msg = f"{which}={source!r} must be without end; leave out n={n}"
        raise ParameterError(msg)
    return dataclasses.replace(generator, rng=flavour)


@kernel
def _chance(number: int, position: float, width: float, recurring: float) -> float:
    """Return the chance that a record, by its number from 1 on, is from the second stream."""
    if recurring == 0.0:
        return 1.0 / (1.0 + np.exp(-4.0 * (number - position) / width))
    # Changes are in pairs, to the second stream and back. Of pairs long ago both sigmoids are 1: they cancel.
    reach = SETTLED * width
    pair = max(math.floor((number - position - recurring - reach) / (2.0 * recurring)), 0)
    chance, change = 0.0, position + 2.0 * recurring * pair
    while change <= number + reach:
        for sign in (1.0, -1.0):
            steps = min(-4.0 * (number - change) / width, 4.0 * SETTLED)
            chance += sign / (1.0 + np.exp(steps))
            change += recurring
    return chance


@kernel("void(uint64, float64, float64, float64, int64, int8[::1])")
def _count(
    key, position: float, width: float, recurring: float, first: int, coins: npt.NDArray[np.int8]
) -> None:
    """Fill coins int8[m] in the counter flavour: draw 0 of each record."""
    for row in range(coins.size):
        chance = _chance(first + row + 1, position, width, recurring)
        coins[row] = 1 if rng.uniform(key, (first + row) << rng.DRAW_BITS) <= chance else 0


@kernel("void(int64[::1], float64, float64, float64, int64, int8[::1])")
def _draw(
    random: npt.NDArray[np.int64],
    position: float,
    width: float,
    recurring: float,
    first: int,
    coins: npt.NDArray[np.int8],
) -> None:
    """Fill coins int8[m] with MOA's draws."""
    for row in range(coins.size):
        chance = _chance(first + row + 1, position, width, recurring)
        coins[row] = 1 if _java.double(random) <= chance else 0
