"""Waveforms with permuted attributes: the concept after a drift of a stream of waveforms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.errors import ParameterError
from core.numeric import rng
from core.plugin import count
from core.streams import _java, waveform
from core.streams.base import Generator, Writer


@dataclass(frozen=True, slots=True)
class Plugin(waveform.Plugin):
    """``waveform`` with ``drift_attributes`` exchanges of columns, from two random columns on.

    The concept is constant: use it in ``drift``, after ``waveform`` or another seed of it.
    """

    drift_attributes: int = count(10, at_most=waveform.POINTS + waveform.IRRELEVANT)

    def __post_init__(self) -> None:
        """Check that ``drift_attributes`` attributes exist."""
        waveform.Plugin.__post_init__(self)
        n = self.schema.n_attributes
        if self.drift_attributes > n:
            msg = f"drift_attributes={self.drift_attributes} must be at most {n}, the number of attributes"
            raise ParameterError(msg)

    def other_concept(self) -> Generator:
        """Return the stream with all columns in their own places."""
        return waveform.Plugin(seed=self.next_seed, rng=self.rng, irrelevant=self.irrelevant)

    def writer(self) -> Writer:
        n, times = self.schema.n_attributes, self.drift_attributes
        if self.rng == "java":
            random = _java.seeded(self.seed)
            place = _exchanged(n, _java.integer(random, n), _java.integer(random, n), times)
            return lambda _first, x, y: waveform.fill_by_java(random, waveform.TRIANGLES, place, x, y)
        model = rng.stream_key(self.seed, rng.GENERATOR_MODEL)
        place = _exchanged(n, rng.integer(model, 0, n), rng.integer(model, 1, n), times)
        key = rng.stream_key(self.seed, rng.GENERATOR_RECORD)
        return lambda first, x, y: waveform.fill_by_counter(key, waveform.TRIANGLES, place, first, x, y)


def _exchanged(n: int, first: int, second: int, times: int) -> npt.NDArray[np.int64]:
    """Return int64[n], the column of each point: exchange i swaps the columns first + i and second + i."""
    place = np.arange(n)
    for i in range(times):
        column, other_column = (first + i) % n, (second + i) % n
        place[[column, other_column]] = place[[other_column, column]]
    return place
