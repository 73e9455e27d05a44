"""The interface of a learner: its part of a spec, the layout of its state, and a few kernels.

    Learner (parameters of a spec) ── blocks(dimensions) ──> BlockLayout (Python) and a module of kernels

A *block* is the state of one instance of the learner: words of the model's buffer, the first of which holds
their number. A model has a list of blocks. The first block answers; further blocks learn beside it while the
drift detector warns (``reaction: rebuild``, for any learner). The drift reactions alone decide how many
blocks a model has. An ensemble keeps its members inside one block, or has a block for each member. A *place*
is where a record ends in a block; for a tree it is the first word of a node record. Learners without places
return 0.

The kernels are in the module that ``Learner.kernels`` names (by default the plug-in's module) and are found
by the kind in ``plan.learner`` (core/learners/dispatch.py). They get records (core/layout): the plan, the
block, and the record as a ``Row``. A learner with its own record for a block names it in the annotation of
the parameter (``block: Tree``).

``answer(plan, block, place, row, prepared, scratch, shares) -> (class, place, hint)``
    predicts with the block and writes normalised shares (float64[class], zeros on entry). It returns class -1
    while no class is known. A ``place`` of 0 or more is known. If ``prepared`` is COUNTS, the record may be
    counted. Else the model is frozen, nothing is written, and ``prepared`` is the address of the array of
    ``BlockLayout.prepare``, or 0 before that call: a kernel that needs the array returns the place FORGOTTEN,
    and is called again with it. If the block has to grow first, the kernel changes nothing and returns the
    place NO_ROOM, with the place to grow at as the hint; ``grow`` is called and the record comes again
``learn(plan, block, place, row, hint, work) -> (outcome, place)``
    learns a record. A ``place`` below 0 is FORGOTTEN or NOT_ANSWERED. ``hint`` is the hint of ``answer`` for
    the same record if nothing was learned since, else -1. The outcome is LEARNED; or GREW (learned, and the
    learner has grown: ``BlockLayout.event_of`` makes an event of the words in ``work.votes``); or
    DECISION_DUE (learned, and ``BlockLayout.grow`` is called before the next record); or GROW_FIRST (nothing
    was learned, ``grow`` is called and the record comes again)
``uncertainty(plan, block, place, shares, scratch, columns) -> (share, lead, weight)``
    returns the input of query strategies: the largest class share at the place (½: no class is known); its
    lead over the second share among the labels that it rests on; and the weight of these labels (0: none;
    below 0: nothing is learned there). ``shares`` is the answer's, for learners whose votes differ more than
    their places (naive Bayes). ``scratch`` is as ``answer`` left it, for committees. The bits of ``columns``
    select results: SHARE, LEAD (and weight), WEIGHT, and for committees VOTES. Whether a bound calls the
    place consistent follows from lead and weight (core/numeric/consistency.py). Scores of the answer's shares
    need no kernel of the learner (core/active/scores.py)
``leaf_table(plan, block, place) -> LeafTable`` (optional)
    returns the leaves as a table, for strategies that share labels out over all leaves. A row is a
    ``LeafRow``: fields that the learner updates, and words for the strategy, which are zeros in a new leaf
    and stay with it. Strategies request it with the column LEAVES
``block_problem(plan, block, blank_address) -> int`` (or ``BlockLayout.problem`` in Python)
    returns a problem of a foreign block of checked size (``BlockLayout.size_of``); the module's ``PROBLEMS``
    holds the sentences (core/problems.py). Every word that a kernel uses as an index, a count or a bound is
    checked
``route_ahead(plan, block, xs, d, ends) -> bool`` (only if the learner sets ``plan.route_ahead``)
    writes where the next WIDTH rows (core/tree/prefetch.py) end, or -1 for all of them; xs:
    float64[WIDTH·d], d attributes a row; ends: int64[WIDTH]. False: nothing was written

The rows and workspaces of kernels are described in core/layout/learning.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import numpy as np

from core import registry
from core.errors import GroveError
from core.events import Event
from core.layout.model import Floats, Ints, ModelHeader
from core.numeric.special import LANES
from core.plugin import Parameters, made_of
from core.schema.dimensions import Dimensions
from core.schema.schema import Schema
from core.tree.conditions import Branch
from core.tree.outline import Outline

Room: TypeAlias = tuple[int, ...]
"""The room of a block, in units of the learner; for a tree (nodes, leaf records)."""

EVENT_WORDS: Final = 16
"""Maximum of words that describe an event, not counting one for each class."""

SPARE_WORDS: Final = 2
"""Words of scratch for learners made of other learners, in addition to those of attributes and classes."""

FIXED: Final[Room] = ()
"""The room of a block whose size follows from the schema."""


class HasBlocks(Protocol):
    """A model, as its learner sees it to grow it or to read it."""

    plan: Any
    address: int
    ints: Ints
    floats: Floats

    @property
    def spec(self) -> Any:
        """Parameters that the model was built from."""

    @property
    def schema(self) -> Schema:
        """Attributes and classes of the model's records."""

    @property
    def block_places(self) -> list[int]:
        """First words of the blocks; the block that answers comes first."""

    def make_room(self, t: int, room: Room) -> int:
        """Give the block at word t this room; return its first word after that."""

    def extends(self, t: int) -> bool:
        """Return whether the block at word t, a large one, usually gets more room without being moved."""


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """The size of a block and counters of its growth."""

    leaves: int = 1
    nodes: int = 1
    depth: int = 0
    splits: int = 0
    attempts: int = 0
    growth_stopped: bool = False
    """The block has reached the caps of the spec."""


@dataclass(slots=True)
class Stretch:
    """Consecutive rows of one model in a run; all have labels of known classes.

    The columns cover the whole run: x float64[n, d], label int32[n], weight float64[n]. prediction int32[n]
    and probability float64[n, K] (zeros) are written if the rows are to be answered.
    """

    x: Any
    label: Any
    weight: Any
    prediction: Any
    probability: Any
    workspace: Any
    """Workspace of the run (``workspace_of``)."""
    first: int
    end: int
    """The first row after the stretch."""
    answers: bool
    """The rows are to be answered; if false, they were answered before."""
    row: int = 0
    """The row that is being learned, for error messages."""


class BlockLayout(ABC):
    """The blocks of a learner for records of certain dimensions: their sizes, and all work on them in Python.

    Plans of equal spec and dimensions share one layout. ``ints`` are the words of a whole model, ``t`` is the
    first word of a block in them.
    """

    new_room: ClassVar[Room] = FIXED
    """Room of a block that has seen nothing."""
    offsets: tuple[int, ...] = ()
    """Offsets of parts of a block, written to the plan from ``plan.arrays`` on for the kernels."""
    blank_address: int = 0
    """Address of the words that ``block_problem`` compares with; 0: none."""
    place_name: ClassVar[str] = "place"
    """The name of a place in messages about foreign models."""
    block_names: ClassVar[tuple[str, str]] = ("first block", "block {}")
    """The names in messages of the block that answers and of further blocks."""

    def name_of(self, block: int) -> str:
        """Return the name of a block in messages, by its number."""
        first, other = self.block_names
        return other.format(block + 1) if block else first

    @abstractmethod
    def words(self, room: Room) -> int:
        """Return the number of words of a block with this room."""

    @abstractmethod
    def least_words(self, classes: int) -> int:
        """Return the words of a block that has seen nothing, for this number of classes."""

    @abstractmethod
    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a block that has seen nothing."""

    @abstractmethod
    def copy(self, old: Any, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Write a block with the state of a block of another layout (or of this one), with at least its room.

        The words of target are zeros from t on. Compared with the old layout, the schema may have more
        classes, values and attributes, each at the end of its list.
        """

    extends: ClassVar[bool] = False
    """A block can get more room without being moved (``extend``)."""

    def extend(self, ints: Ints, t: int, room: Room) -> None:
        """Give the block at word t, the last one, at least its present room without moving it.

        The words after the block are zeros. The result equals a ``copy`` into a zeroed buffer.
        """
        raise NotImplementedError

    @abstractmethod
    def size_of(self, ints: Ints, t: int) -> int | None:
        """Return the words of a foreign block by its header; None if the header contradicts itself."""

    def problem(self, ints: Ints, t: int) -> str | None:
        """Return the problem of a foreign block that no kernel has checked; None if it is sound."""
        return None

    def room(self, ints: Ints, t: int) -> Room:
        return self.new_room

    def live_room(self, ints: Ints, t: int) -> Room:
        """Return the room that the block needs; a snapshot has this room."""
        return self.new_room

    def grow(self, model: HasBlocks, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Do what ``learn`` requested with DECISION_DUE or GROW_FIRST; return the resulting events.

        row: the record's row in its run; index: the model's index in its table. Events hold both.
        """
        msg = f"outcome={reason} of learning must be LEARNED: blocks of this learner never grow"
        raise GroveError(msg)

    def event_of(self, words: Floats, row: int, index: int) -> Event:
        """Return the event of growth by ``learn`` (outcome GREW) from words: float64[EVENT_WORDS + class]."""
        msg = f"row={row} must not have let a block grow: blocks of this learner never do"
        raise GroveError(msg)

    def prepare(self, ints: Ints, t: int) -> Floats:
        """Return the array that ``answer`` needs for a frozen block, where it counts nothing (float64[n])."""
        return np.zeros(1)

    def takes_attributes(self, ints: Ints, t: int) -> bool:
        """Return whether a block may still take in attributes that are new to the schema."""
        return True

    def undecided_weight(self, ints: Ints, t: int) -> float:
        """Return the weight of labels up to which nothing depends on the number of attributes.

        Up to this weight a feature may be added before its first value comes. A negative weight means that
        answers depend on the number already, for instance where subsets of the attributes are sampled: here,
        as soon as a label was learned.
        """
        return -1.0 if ModelHeader.over(ints).labels else 0.0

    def summary(self, ints: Ints, t: int) -> BlockSummary:
        return BlockSummary()

    def nodes(self, ints: Ints, t: int) -> int:
        """Return the number of nodes, cheaply; it may include places of absent branches."""
        return 1

    def has_stopped(self, ints: Ints, t: int) -> bool:
        """Return whether the block has reached the caps of the spec."""
        return False

    def next_test(self, ints: Ints, t: int, x: Floats, unknown: Any) -> int:
        """Return the column that the next test on a record's path needs, or -1 if the record is at its end.

        x: float64[d]; unknown: bool[d], the columns whose value may still come. Only for learners that have
        paths (``Learner.has_paths``).
        """
        return -1

    def explain(
        self, schema: Schema, ints: Ints, t: int, x: Floats, place: int | None = None
    ) -> tuple[Branch, ...]:
        """Return the branches that lead a record to its prediction; place: the record's, if known."""
        return ()

    def thresholds(self, model: HasBlocks) -> dict[str, tuple[float, ...]]:
        """Return the thresholds of numeric attributes by name, if all records meet the same thresholds."""
        return {}

    def play(self, model: HasBlocks, stretch: Stretch, index: int) -> list[Event]:
        """Learn a stretch, and answer it if ``stretch.answers``, as if row by row; return the events.

        Only for learners that set ``plan.stretch``. The model's counters stay as they are: rows are counted
        afterwards, one by one. Events come in the order of rows. index: the model's index in its table.
        """
        msg = f"{stretch.first} must not begin a stretch: blocks of this learner take row by row"
        raise GroveError(msg)

    @abstractmethod
    def outline(self, model: HasBlocks, t: int, depth: int | None) -> Iterator[Outline]:
        """Yield the nodes, parents first, down to ``depth``. A block that is no tree yields one node."""

    def problems(self, model: HasBlocks, t: int) -> Iterator[str]:
        """Yield sentences about suspicious parts of a block that is sound."""
        yield from ()


@dataclass(frozen=True, slots=True)
class Learner(Parameters, ABC):
    """A learner's parameters; its file has a subclass ``Plugin``."""

    family: ClassVar[str] = "learners"
    kernels: ClassVar[str | None] = None
    """The module of the learner's kernels, which learners may share; None: the plug-in's module."""
    unit_weights: ClassVar[bool] = False
    """The learner counts records: a record whose weight is not 1 is refused."""
    has_members: ClassVar[bool] = False
    """The learner is a committee: its ``uncertainty`` supports the column VOTES."""
    has_paths: ClassVar[bool] = False
    """The learner's blocks route a record by tests of one attribute each (``BlockLayout.next_test``)."""

    @abstractmethod
    def blocks(self, dims: Dimensions) -> BlockLayout:
        """Return the layout of the learner's blocks for records of these dimensions."""

    @property
    def max_bytes(self) -> float:
        """Return the maximum of bytes of a model; some learners have a parameter for it."""
        return float(1 << 30)

    @property
    def compat(self) -> str | None:
        """Return the published code whose quirks the learner has; some learners have a parameter for it."""
        return None

    @property
    def max_classes(self) -> int | None:
        """Return the number of classes that the learner is limited to; None: any number."""
        return None

    @property
    def acquirer(self) -> Any:
        """Return the acquirer (active/acquirers/base.py) used if the spec names none; None: no purchases."""
        return None

    def check_schema(self, schema: Schema) -> None:
        """Raise SchemaError if the learner cannot learn records of this schema."""

    @property
    def default_range(self) -> tuple[float, float]:
        """Return the range of a numeric attribute whose schema has none."""
        return 0.0, 1.0

    def plugins(self) -> list[tuple[int, Parameters]]:
        """Return the plug-ins that the learner is made of, each with the word of the plan for its kind.

        The next word of the plan holds where the plug-in's parameters begin.
        """
        return []

    def write_plan(self, ints: Ints, floats: Floats, dims: Dimensions, blocks: Any) -> None:
        """Write the plan's words that belong to the learner; all other words are written already."""

    def shared_words(self, dims: Dimensions) -> int:
        """Return the number of words that all blocks share, zeros at first; attributes append some."""
        return 0

    @property
    def compiled_with(self) -> tuple[str, ...]:
        """Return the modules whose entry kernels the learner calls, without those that all specs need."""
        return ()

    @classmethod
    def build(cls, given: dict[str, Any], named: str) -> Any:
        """Return the learner with these parameters; ``named``: its name in the spec."""
        return made_of(cls, given, named)


def build(body: dict[str, Any]) -> Any:
    """Return the learner of a spec: its name and its parameters."""
    parameters = dict(body)
    name = parameters.pop("name")
    return registry.plugin("learners", name).build(parameters, name)


def workspace_of(columns: int, classes: int) -> Floats:
    """Return the workspace of runs with this number of columns and classes, float64[3, …].

    Its rows: room for the numeric attributes of a record, ``Work.scratch``, ``Work.votes``.
    """
    least = max(4 * columns + LANES, 2 * classes, EVENT_WORDS + classes)
    return np.empty((3, least + 3 * columns + 2 * classes + SPARE_WORDS))
