"""Blocks of UFODT: arrays whose sizes depend on the thresholds; the last arrays form an episode."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.events import Event, ThresholdsSet
from core.learners.arrays import Array, ArrayLayout, copy_axes
from core.learners.protocol import HasBlocks
from core.learners.ufodt import gathering
from core.learners.ufodt import words as w
from core.learners.ufodt.account import thresholds_of
from core.schema.dimensions import Dimensions, values_carried
from core.tree import layout as at
from core.tree.layout import Floats, Ints

MOST: Final = float(1 << 53)
"""A limit above every number of an outcome or a threshold."""


def arrays_of(k: int, own: int) -> tuple[Array, ...]:
    """Return the arrays of a block with k thresholds of numeric attributes, ``own`` from first values."""
    positive: dict[str, Any] = {"fill": 1.0, "at_least": 1e-300, "below": 1e300}
    return (
        Array("labels", ("class",), at_least=0.0, below=1e300),
        Array("nominal", ("class", "value"), **positive),
        Array("above", ("class", k), **positive),
        Array("below", ("class", k), **positive),
        Array("used", ("class", k), **positive),
        Array("gains", (k,), at_least=0.0, below=1e300),
        Array("begun", ("class",), is_integer=True, at_least=0, below=2),
        Array("weights", ("class", "attribute"), at_least=-1e300, below=1e300),
        Array("episode", (w.EPISODE_WORDS,), is_integer=True),
        Array("prior", ("class",)),
        Array("status", ("attribute",), is_integer=True, at_least=0, below=5),
        Array("outcome", ("attribute",), fill=-1, is_integer=True, at_least=-1, below=MOST),
        Array("value", ("attribute",)),
        Array("threshold", ("attribute",), is_integer=True, at_least=0, below=MOST),
        Array("outcomes", ("attribute",), is_integer=True, at_least=0, below=MOST),
        Array("gain", ("attribute",), at_least=0.0, below=1e300),
        Array("chance", ("attribute",), at_least=0.0, below=1e300),
        Array("exploited", ("attribute",), is_integer=True, at_least=0, below=2),
        Array("p_nominal", ("class", "value")),
        Array("p_above", ("class", k)),
        Array("p_mean", ("class", "numeric")),
        Array("own_thresholds", (own,), fill=math.nan),
    )


class UfodtLayout(ArrayLayout):
    """The blocks of UFODT for records of certain dimensions."""

    def __init__(self, learner: Any, dims: Dimensions) -> None:
        """Lay the arrays out, and write the description of the features after the places of the arrays."""
        super().__init__(learner, dims)
        self.places = dict(zip((array.name for array in self.arrays), self.offsets, strict=True))
        self.episode_words = self.size - self.places["episode"]
        """Words of an episode outside a block."""
        cuts = w.thresholds(dims, learner.n_thresholds)
        self.offsets = (*self.offsets, *w.feature_table(dims, cuts, learner.warm_up))

    def views(self, ints: Ints, t: int) -> list[Any]:
        return self._views(ints, t, 0, 0)

    def episode_arrays(self, episode: Ints) -> dict[str, Any]:
        """Return the arrays of an episode in a separate buffer, by name, not copied."""
        found = self._views(episode, 0, w.EPISODE, self.places["episode"])
        return {array.name: words for array, words in zip(self.arrays[w.EPISODE :], found, strict=True)}

    def _views(self, ints: Ints, t: int, first: int, shift: int) -> list[Any]:
        found = []
        for array, shape in zip(self.arrays[first:], self.shapes[first:], strict=True):
            begin = t + self.places[array.name] - shift
            words = ints[begin : begin + int(np.prod(shape, dtype=np.int64))].reshape(shape)
            found.append(words if array.is_integer else words.view(np.float64))
        return found

    def undecided_weight(self, ints: Ints, t: int) -> float:
        """Return a negative weight: purchases depend on the number of attributes from the start."""
        return -1.0

    def takes_attributes(self, ints: Ints, t: int) -> bool:
        """Return False: features are declared in advance, with their thresholds and costs."""
        return False

    def problem(self, ints: Ints, t: int) -> str | None:
        """Return a problem of the words of a foreign block; None if they are sound."""
        first = int(ints[at.MODEL_FIRST])
        shared = ints[first - self.learner.shared_words(self.dims) : first].view(np.float64)
        return (
            super().problem(ints, t)
            or self.header_problem(self.named(ints, t)["episode"])
            or gathering.problem(self.dims, self.learner, shared)
        )

    def thresholds(self, model: HasBlocks) -> dict[str, tuple[float, ...]]:
        """Return the thresholds of each numeric attribute; none while its first values are gathered."""
        return thresholds_of(model)

    def event_of(self, words: Floats, row: int, index: int) -> Event:
        """Return the event of attributes that got thresholds; words: how many did, how many have none yet."""
        return ThresholdsSet(row, index, int(words[0]), int(words[1]))

    def episode_problem(self, episode: Ints) -> str | None:
        """Return a problem of the words of a foreign episode; None if they are sound."""
        found = self.episode_arrays(episode)
        for array in self.arrays[w.EPISODE :]:
            if (problem := array.problem(found[array.name], self.dims.classes)) is not None:
                return f"episode: {problem}"
        return self.header_problem(found["episode"])

    def header_problem(self, header: Ints) -> str | None:
        """Return a problem of the first words of an episode; None if they are sound."""
        for word, name, limit in (
            (w.CLASSES, "classes", self.dims.classes + 1),
            (w.STATE, "state", w.LEARNED + 1),
            (w.REASON, "reason", w.FINISHED + 1),
        ):
            if not 0 <= header[word] < limit:
                return f"{name} of an episode must be at least 0 and below {limit}"
        return None

    def copy_episode(self, old: UfodtLayout, source: Ints, target: Ints) -> None:
        """Write an episode of an older schema as an episode of this one; both are in separate buffers."""
        values = values_carried(old.dims, self.dims)
        before, now = old.episode_arrays(source), self.episode_arrays(target)
        for array in self.arrays[w.EPISODE :]:
            now[array.name][...] = array.fill
            copy_axes(array.axes, before[array.name], now[array.name], values)
