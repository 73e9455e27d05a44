"""Layouts of two arenas: a block appends records of two kinds, as many as fit into the bytes of the spec.

    header | parts whose size follows from the schema | first arena | second arena

The header counts the records in use and the records that there is room for. It also has the words that may be
taken, which follow from the classes and values that the model has learned, never from the schema, so that the
cut of runs does not matter.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Final

import numpy as np

from core.layout.model import WORD, Floats, Ints
from core.learners.protocol import BlockLayout, HasBlocks, Room
from core.schema.dimensions import Dimensions
from core.tree.outline import Outline

FIRST, SECOND, RECKONED = range(3)
"""A room: records of the first and of the second arena, and 1 if ``reckon`` computed how many of them fit. A
snapshot drops the third number.
"""

_NO_WORDS: Final = np.zeros(0, dtype=np.int64)


class ArenaLayout(BlockLayout):
    """The blocks of a learner with two arenas, for records of certain dimensions."""

    new_room: ClassVar[Room] = (0, 0, 0)
    header: ClassVar[Any]
    """The record of the block's header: ``words``, ``classes``, ``stopped``, ``reckoned``, ``limit``, and the
    fields that are named here."""
    capacities: ClassVar[tuple[str, str]]
    """The fields that hold the room of both arenas."""
    used: ClassVar[tuple[str, str]]
    """The fields that hold how many records of both arenas are in use."""
    learned_size: ClassVar[str]
    """The field that holds ``varying_words`` for what the model has learned."""

    def __init__(self, learner: Any, dims: Dimensions) -> None:
        """Take the learner, whose parameters define the parts of records."""
        self.learner = learner
        self.dims = dims
        self.plan_words: Ints = _NO_WORDS
        """The words of the plan that the layout belongs to."""

    @abstractmethod
    def fixed_words(self, classes: int) -> int:
        """Return the words before the first arena for this number of classes."""

    @abstractmethod
    def varying_words(self, values: int) -> int:
        """Return the words of a record that depends on the number of values of nominal attributes."""

    @abstractmethod
    def class_weights(self, ints: Ints, t: int) -> Floats:
        """Return the weight of the labels of each class."""

    def at(self, ints: Ints, t: int) -> Any:
        """Return the header of the block at word t."""
        return self.header(ints, ints.view(np.float64), t)

    # Sizes

    def room(self, ints: Ints, t: int) -> Room:
        block = self.at(ints, t)
        first, second = (int(getattr(block, name)) for name in self.capacities)
        return first, second, int(block.reckoned != 0)

    def live_room(self, ints: Ints, t: int) -> Room:
        block = self.at(ints, t)
        first, second = (int(getattr(block, name)) for name in self.used)
        return first, second, 0

    def size_of(self, ints: Ints, t: int) -> int | None:
        """Return the words of a foreign block; None if its header contradicts the schema or itself."""
        fixed = self.fixed_words(self.dims.classes)
        if t + fixed > len(ints) or self.at(ints, t).classes != self.dims.classes:
            return None
        room = self.room(ints, t)
        if not all(0 <= size <= len(ints) for size in room):
            return None
        size = self.words(room)
        return size if t + size <= len(ints) and self.at(ints, t).words == size else None

    def reckon(self, model: HasBlocks, t: int) -> tuple[int, int]:
        """Compute the words of both arenas, and ``varying_words``, for what the model has learned."""
        ints, block = model.ints, self.at(model.ints, t)
        seen = block.model.values_seen(model.plan.record)
        values, classes = int(seen[: len(self.dims.nominal)].sum()), int(block.model.classes)
        limit = max(int(model.plan.learned_bytes(ints) // WORD) - self.fixed_words(classes), 1)
        size = self.varying_words(values)
        block.reckoned = classes + values
        block.limit = limit
        setattr(block, self.learned_size, size)
        return limit, size

    # Writing

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a header and zeros."""
        words = self.words(room)
        ints[t : t + words] = 0
        block = self.at(ints, t)
        block.words = words
        block.classes = self.dims.classes
        for name, capacity in zip(self.capacities, room, strict=False):
            setattr(block, name, capacity)

    def copy_header(self, old: Any, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Copy all words except sizes; what ``reckon`` computed only to a block of equal layout."""
        sizes = {"words", "classes", *self.capacities}
        if old is not self or not room[RECKONED]:
            sizes |= {"reckoned", "limit", self.learned_size}
        from_block, to_block = old.at(source, s), self.at(target, t)
        for name in self.header.FIELDS:
            if name not in sizes:
                setattr(to_block, name, getattr(from_block, name))

    # Reading

    def has_stopped(self, ints: Ints, t: int) -> bool:
        """Return whether bytes were lacking for a split or a tree."""
        return bool(self.at(ints, t).stopped)

    def outline_above(self, ints: Ints, t: int, roots: list[int], test: str, ends: bool) -> Outline:
        """Return the node above all trees, number 0.

        roots: the numbers of their roots; test: the name of its test, if there are trees; ends: the outline
        ends with this node.
        """
        weights = self.class_weights(ints, t)
        return Outline(
            number=0,
            parent=-1,
            depth=0,
            branch=None,
            test=test if roots else None,
            children=() if ends else tuple(root + 1 for root in roots),
            masses=tuple(weights.tolist()),
            majority=int(np.argmax(weights)) if weights.any() else None,
            routed=float(weights.sum()),
            leaves_below=self.summary(ints, t).leaves if ends and roots else 0,
        )
