"""Blocks of UFODT: arrays whose sizes depend on the thresholds; the last arrays form an episode."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.events import Event, ThresholdsSet
from core.kernels.records import offset
from core.layout.model import Floats, Ints, ModelHeader
from core.learners.arrays import Array, ArrayLayout, copy_axes
from core.learners.protocol import HasBlocks
from core.learners.ufodt import gathering
from core.learners.ufodt.account import thresholds_of
from core.learners.ufodt.features import FeaturePlan, feature_table, thresholds
from core.learners.ufodt.words import EPISODE_WORDS, Episode
from core.schema.dimensions import Dimensions, values_carried

MOST: Final = float(1 << 53)
"""A limit above every number of an outcome or a threshold."""

FIRST_OF_EPISODE: Final = offset(FeaturePlan, "episode")
"""Number of the first array of an episode."""


def arrays_of(k: int, own: int) -> tuple[Array, ...]:
    """Return the arrays of a block in the order of FeaturePlan.

    k: thresholds of numeric attributes; own: thresholds that are made of first values.
    """
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
        Array("episode", (EPISODE_WORDS,), is_integer=True),
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
        cuts = thresholds(dims, learner.n_thresholds)
        self.offsets = (*self.offsets, *feature_table(dims, cuts, learner.warm_up))

    def views(self, ints: Ints, t: int) -> list[Any]:
        return self._views(ints, t, 0, 0)

    def episode_arrays(self, episode: Ints) -> dict[str, Any]:
        """Return the arrays of an episode in a separate buffer, by name, not copied."""
        views = self._views(episode, 0, FIRST_OF_EPISODE, self.places["episode"])
        return {array.name: words for array, words in zip(self.arrays[FIRST_OF_EPISODE:], views, strict=True)}

    def _views(self, ints: Ints, t: int, first: int, shift: int) -> list[Any]:
        views = []
        for array, shape in zip(self.arrays[first:], self.shapes[first:], strict=True):
            begin = t + self.places[array.name] - shift
            words = ints[begin : begin + int(np.prod(shape, dtype=np.int64))].reshape(shape)
            views.append(words if array.is_integer else words.view(np.float64))
        return views

    def undecided_weight(self, ints: Ints, t: int) -> float:
        """Return a negative weight: purchases depend on the number of attributes from the start."""
        return -1.0

    def takes_attributes(self, ints: Ints, t: int) -> bool:
        """Return False: features are declared in advance, with their thresholds and costs."""
        return False

    def problem(self, ints: Ints, t: int) -> str | None:
        """Return a problem of the words of a foreign block; None if they are sound."""
        first = int(ModelHeader.over(ints).first)
        shared = ints[first - self.learner.shared_words(self.dims) : first]
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
        views = self.episode_arrays(episode)
        for array in self.arrays[FIRST_OF_EPISODE:]:
            if (problem := array.problem(views[array.name], self.dims.classes)) is not None:
                return f"episode: {problem}"
        return self.header_problem(views["episode"])

    def header_problem(self, header: Ints) -> str | None:
        """Return a problem of the first words of an episode; None if they are sound."""
        episode = Episode.over(header)
        for name, field in Episode.FIELDS.items():
            low, high = (0, self.dims.classes) if name == "classes" else (field.low, field.high)
            value = getattr(episode, name)
            if high is not None and not low <= value <= high:
                return f"{name}={value} of an episode must be from {low} to {high} ({field.meaning})"
        return None

    def copy_episode(self, old: UfodtLayout, source: Ints, target: Ints) -> None:
        """Write an episode of an older schema as an episode of this one; both are in separate buffers."""
        values = values_carried(old.dims, self.dims)
        before, now = old.episode_arrays(source), self.episode_arrays(target)
        for array in self.arrays[FIRST_OF_EPISODE:]:
            now[array.name][...] = array.fill
            copy_axes(array.axes, before[array.name], now[array.name], values)
