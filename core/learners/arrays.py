"""Learners whose state is a few arrays: declared by name and axes, laid out, grown and checked here.

    class Plugin(ArrayLearner):
        arrays = (Array("counts", ("class",), at_least=0.0),)

The module also has three kernels, ``answer``, ``learn`` and ``uncertainty`` (core/learners/protocol.py).
Arrays are numbered in the order of declaration: ``array_at(plan, block, 0).numbers[c]`` is a word of the
first one. A block is

    words | array | array | …

Arrays grow with the schema; new parts have the content that they would have had from the beginning. A
snapshot that holds words beyond the limits is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import numpy as np

from core.kernels.jit import kernel
from core.kernels.records import Record, words_after
from core.layout.model import Block, Floats, Ints, ModelHeader
from core.layout.plan import PlanRecord
from core.learners.protocol import BlockLayout, HasBlocks, Learner, Room
from core.schema.dimensions import Dimensions, values_carried
from core.tree.outline import Outline

HEADER: Final = Block.SIZE

Axis = Literal["class", "attribute", "numeric", "nominal", "value"] | int
"""Axes of an array: classes; attributes (all, numeric or nominal); the values of all nominal
attributes one after another; or a constant size.
"""


@dataclass(frozen=True, slots=True)
class Array:
    """An array of a block: its name, axes and first content, and the limits for foreign content."""

    name: str
    axes: tuple[Axis, ...] = ()
    fill: float | Callable[[Any], None] = 0.0
    """Content of new words, or a function that writes it (into float64[shape])."""
    is_integer: bool = False
    """The array is int64; if false, float64."""
    at_least: float = -math.inf
    """The smallest value; -∞: any, NaN too."""
    below: Literal["class"] | float = math.inf
    """Upper limit (exclusive) of every value: a number, or the number of classes."""

    def shape(self, dims: Dimensions, classes: int) -> tuple[int, ...]:
        sizes = {
            "class": classes,
            "attribute": dims.attributes,
            "numeric": len(dims.numeric),
            "nominal": len(dims.nominal),
            "value": dims.values,
        }
        return tuple(axis if isinstance(axis, int) else sizes[axis] for axis in self.axes)

    def problem(self, words: Any, classes: int) -> str | None:
        limit = float(classes) if self.below == "class" else self.below
        is_free = self.at_least == -math.inf and limit == math.inf
        if is_free or bool(((words >= self.at_least) & (words < limit)).all()):
            return None
        return f"{self.name} must be at least {self.at_least:g} and below {limit:g}"


@dataclass(frozen=True, slots=True)
class ArrayLearner(Learner):
    """A learner whose blocks are arrays; its file declares them and has the kernels."""

    arrays: ClassVar[tuple[Array, ...]]

    def blocks(self, dims: Dimensions) -> ArrayLayout:
        return ArrayLayout(self, dims)

    def arrays_for(self, dims: Dimensions) -> tuple[Array, ...]:
        """Return the arrays for records of these dimensions; to override where they depend on parameters."""
        return self.arrays

    def masses(self, arrays: dict[str, Any], classes: int) -> Floats:
        """Return the class weights that a block votes with (float64[class]), for drawings of the block."""
        counts: Floats = arrays["counts"]
        return counts


class ArrayWords(Record):
    """The words of an array in a block, row after row."""

    numbers: Any = words_after(float, "the words of a float64 array")
    integers: Any = words_after(int, "the words of an int64 array")


class ArrayLayout(BlockLayout):
    """The blocks of a learner of arrays for records of certain dimensions."""

    def __init__(self, learner: ArrayLearner, dims: Dimensions) -> None:
        """Lay the arrays out, one after another."""
        self.learner = learner
        self.dims = dims
        self.arrays = learner.arrays_for(dims)
        self.shapes = [array.shape(dims, dims.classes) for array in self.arrays]
        sizes = [HEADER, *map(math.prod, self.shapes)]
        self.offsets = tuple(np.cumsum(sizes).tolist()[:-1])
        self.size = sum(sizes)

    def undecided_weight(self, ints: Ints, t: int) -> float:
        """Return infinity: arrays learn and decide nothing, so that a feature may be added at any time."""
        return math.inf

    def words(self, room: Room) -> int:
        return self.size

    def least_words(self, classes: int) -> int:
        return HEADER + sum(math.prod(array.shape(self.dims, classes)) for array in self.arrays)

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        Block(ints, ints.view(np.float64), t).words = self.size
        for array, words in zip(self.arrays, self.views(ints, t), strict=True):
            if callable(array.fill):
                array.fill(words)
            else:
                words[...] = array.fill

    def copy(self, old: Any, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Write a block with the state of one whose schema may be smaller."""
        self.plant(target, t, room)
        if old is self:
            target[t : t + self.size] = source[s : s + self.size]
            return
        values = values_carried(old.dims, self.dims)
        arrays = zip(self.arrays, old.views(source, s), self.views(target, t), strict=True)
        for array, before, now in arrays:
            copy_axes(array.axes, before, now, values)

    def size_of(self, ints: Ints, t: int) -> int | None:
        """Return the number of words of a foreign block; None if it is not the schema's."""
        is_whole = t + self.size <= len(ints) and Block(ints, ints.view(np.float64), t).words == self.size
        return self.size if is_whole else None

    def problem(self, ints: Ints, t: int) -> str | None:
        """Return the problem of the words of a foreign block; None if they are sound."""
        arrays = zip(self.arrays, self.views(ints, t), strict=True)
        problems = (array.problem(words, self.dims.classes) for array, words in arrays)
        return next((problem for problem in problems if problem is not None), None)

    def views(self, ints: Ints, t: int) -> list[Any]:
        """Return the arrays of a block, each float64 or int64 in its shape, not copied."""
        views = []
        for array, shape, offset in zip(self.arrays, self.shapes, self.offsets, strict=True):
            words = ints[t + offset : t + offset + math.prod(shape)].reshape(shape)
            views.append(words if array.is_integer else words.view(np.float64))
        return views

    def named(self, ints: Ints, t: int) -> dict[str, Any]:
        return {array.name: words for array, words in zip(self.arrays, self.views(ints, t), strict=True)}

    def outline(self, model: HasBlocks, t: int, depth: int | None) -> Iterator[Outline]:
        masses = self.learner.masses(self.named(model.ints, t), self.dims.classes)
        yield Outline(
            number=0,
            parent=-1,
            depth=0,
            branch=None,
            test=None,
            children=(),
            masses=tuple(masses.tolist()),
            majority=int(np.argmax(masses)) if masses.any() else None,
            routed=float(ModelHeader(model.ints, model.floats, 0).records),
            leaves_below=0,
        )


def copy_axes(axes: tuple[str | int, ...], source: Any, target: Any, values: Ints) -> None:
    """Copy an array into one that may be larger.

    Axes grow at their ends. The axis of values grows where the room of each attribute ends. values: the new
    place of each old place.
    """
    corner = tuple(slice(size) for size in source.shape)
    if "value" not in axes:
        target[corner] = source
        return
    axis = axes.index("value")
    where = [*corner]
    where[axis] = slice(None)
    slices, old_slices = np.moveaxis(target[tuple(where)], axis, 0), np.moveaxis(source, axis, 0)
    slices[values] = old_slices


@kernel
def array_at(plan: PlanRecord, block: Record, number: int) -> ArrayWords:
    """Return an array of a block, by its number in the order of declaration."""
    return ArrayWords(block.ints, block.floats, block.start + plan.ints[plan.arrays + number])
