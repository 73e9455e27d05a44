"""What a learner is to the rest of core: a spec's part, the layout of its state, and a few kernels.

    Learner (parameters of a spec) ── blocks(dimensions) ──> BlockLayout (Python) and a module of kernels

A *block* is the state of one instance of the learner, words of the model's buffer of which the first says how
many they are. A model has a list of blocks: the first one answers, the others learn beside it while the drift
detector warns (``reaction: rebuild``, for any learner). How many a model has is the business of the drift
reactions alone; an ensemble keeps its members inside of one block, or asks for a block each. A *place* is
where a record ends in a block (of a tree: the first word of a node record); learners that have none say 0.

Kernels, in the module that ``Learner.kernels`` names (by default the plug-in's own), found by the kind in
``plan[PLAN_LEARNER]``; the learner's numeric parameters are at ``params[plan[PLAN_LEARNER + 1]:]``:

``answer(plan, params, ints, floats, t, place, x, xs, weight, prepared, scratch, shares)
  -> (class, place, hint)``
    predicts with the block at word t; writes normalised shares (float64[class], zeros on entry). Returns -1
    as the class while none is known. ``place`` is known if it is 0 or more. ``prepared`` is COUNTS, and the
    record may be counted; else the model is frozen, nothing is written, and ``prepared`` is the address of
    what ``BlockLayout.prepare`` returned, 0 before: who cannot do without it returns the place FORGOTTEN and
    is asked again. A block that has to grow before it can take the record in returns the place NO_ROOM and as
    the hint the place to grow at, having changed nothing: ``grow`` is called and the record comes again
``learn(plan, params, ints, floats, t, place, x, xs, label, weight, hint, scratch, vote_buffer)
  -> (outcome, place)``
    learns a record. ``place`` below 0: FORGOTTEN or NOT_ANSWERED; ``hint`` is that of ``answer`` for the same
    record if nothing was learned since, else -1. The outcome is LEARNED, or GREW (learned, and the learner
    has grown by it: ``vote_buffer`` holds words of which ``BlockLayout.event_of`` makes an event), or
    DECISION_DUE (learned, and ``BlockLayout.grow`` is called before the next record), or GROW_FIRST (nothing
    was learned, ``grow`` is called and the record comes again)
``uncertainty(plan, params, ints, floats, t, place, shares, scratch, columns) -> (share, lead, weight)``
    what query strategies go by: the largest class share at the place (½: nothing is known), the lead of the
    largest over the second share among the labels that it rests on, and the weight of these (0: none; below
    0: nothing is learned there). ``shares`` are those of the answer, for learners whose places say less than
    their votes: naive Bayes; ``scratch`` is as ``answer`` has left it, for committees. ``columns`` says by
    bits which are wanted: SHARE, LEAD (and weight), WEIGHT. Whether a bound calls the place consistent
    follows from lead and weight (core/numeric/consistency.py)
``leaf_table(plan, ints, t, place) -> (first, stride, rows, row)`` (only of learners that have one)
    the leaves as a table for strategies that share labels out over all of them: word of the first row, words
    from row to row, their number, and the number of the place's row. A row is ROW_NODE … ROW_ERRORS of
    core/tree/layout.py, which the learner keeps up to date, and words that are the strategy's own
    (ROW_NOTES): zeros in a new leaf, kept with it. Dispatched like ``uncertainty``; a strategy asks for it
    with the column LEAVES
``block_problem(plan, params, ints, floats, t, blank_address) -> int`` (or ``BlockLayout.problem`` in Python)
    a problem of a foreign block (core/problems.py), with sentences in the module's ``PROBLEMS``. Its size was
    checked before (``BlockLayout.size_of``); whatever another kernel takes for an index, a count or a bound
    must be among them
``route_ahead(plan, ints, floats, t, xs, d, ends) -> bool`` (only of learners that set PLAN_ROUTE_AHEAD)
    finds the places of the next records at once

``x`` is the record (float64[column], missing NaN), ``xs`` its numeric attributes, ``scratch`` four words an
attribute and two a class, whatever they hold, ``vote_buffer`` as many, and EVENT_WORDS and one a class at
least;
behind them ``scratch`` has three words an attribute, two a class and SPARE_WORDS for learners that are made
of others.
"""

from __future__ import annotations

import functools
import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import numpy as np

from core import registry
from core.errors import GroveError
from core.events import Event
from core.kernels.jit import FLOATS, INTS, WORDS
from core.plugin import Parameters, made_of
from core.schema.dimensions import Dimensions
from core.schema.schema import Schema
from core.tree.conditions import Branch
from core.tree.layout import Floats, Ints
from core.tree.outline import Outline

Room: TypeAlias = tuple[int, ...]
"""What a block has room for, in the learner's own units: of a tree (nodes, leaf records)."""

EVENT_WORDS: Final = 16
"""Words that describe an event at most, besides one a class."""

SPARE_WORDS: Final = 2
"""Words of scratch for learners that are made of others, besides those of attributes and classes."""

FIXED: Final[Room] = ()
"""The room of a block whose size follows from the schema."""


class HasBlocks(Protocol):
    """A model, as a learner sees it that grows or is looked at."""

    plan: Any
    address: int
    ints: Ints
    floats: Floats

    @property
    def spec(self) -> Any:
        """What the model was built from."""

    @property
    def schema(self) -> Schema:
        """What its records look like."""

    @property
    def block_places(self) -> list[int]:
        """First words of the blocks, that which answers first."""

    def make_room(self, t: int, room: Room) -> int:
        """Give the block at word t this room; return where it begins then."""

    def extends(self, t: int) -> bool:
        """Return whether the block at word t, a large one, usually gets room where it lies."""


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """The size of a block and what it has been through."""

    leaves: int = 1
    nodes: int = 1
    depth: int = 0
    splits: int = 0
    attempts: int = 0
    growth_stopped: bool = False
    """It reached the caps of the spec."""


@dataclass(slots=True)
class Stretch:
    """Rows of one model that follow on each other in a run and have labels of classes it knows.

    Columns are those of the whole run: x float64[n, d], label int32[n], weight float64[n]; prediction
    int32[n] and probability float64[n, K] (zeros) are written if the rows are to be answered.
    """

    x: Any
    label: Any
    weight: Any
    prediction: Any
    probability: Any
    workspace: Any
    """That of the run (``workspace_of``)."""
    first: int
    end: int
    """The row behind the last."""
    answers: bool
    """They are to be answered; else they were before."""
    row: int = 0
    """The row that is being learned, for who has to say where something failed."""


class BlockLayout(ABC):
    """The blocks of a learner for records of certain dimensions: sizes, and all that Python does with them.

    Plans of equal spec and dimensions share one. ``ints`` are the words of a whole model, ``t`` the first
    word of a block in them.
    """

    new_room: ClassVar[Room] = FIXED
    """What a block has room for that has seen nothing."""
    offsets: tuple[int, ...] = ()
    """Words that kernels find in the plan, from plan[PLAN_ARRAYS] on: where something lies in a block."""
    blank_address: int = 0
    """Address of words that ``block_problem`` compares with, 0: of none."""
    place_name: ClassVar[str] = "place"
    """What a place is called in messages about foreign models,"""
    block_names: ClassVar[tuple[str, str]] = ("first block", "block {}")
    """and what the block that answers and the others are."""

    def name_of(self, block: int) -> str:
        """Return what a block is called in messages, by its number."""
        first, other = self.block_names
        return other.format(block + 1) if block else first

    @abstractmethod
    def words(self, room: Room) -> int:
        """Return the words of a block with this room."""

    @abstractmethod
    def least_words(self, classes: int) -> int:
        """Return the words of a block that has seen nothing, for so many classes."""

    @abstractmethod
    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a block that has seen nothing."""

    @abstractmethod
    def copy(self, old: Any, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Write a block with the state of one of another layout (perhaps this), with as much room or more.

        The words of target are zeros from t on.

        The schema may have grown by classes, values and attributes at their ends.
        """

    extends: ClassVar[bool] = False
    """A block can get more room where it lies (``extend``)."""

    def extend(self, ints: Ints, t: int, room: Room) -> None:
        """Give the block at word t, the last one, as much room or more where it lies.

        The words behind it are zeros; what is written is what ``copy`` would write there.
        """
        raise NotImplementedError

    @abstractmethod
    def size_of(self, ints: Ints, t: int) -> int | None:
        """Return the words of a foreign block by what it says of itself, None: it contradicts itself."""

    def problem(self, ints: Ints, t: int) -> str | None:
        """Return what is wrong with a foreign block that no kernel has looked at, None: nothing."""
        return None

    def room(self, ints: Ints, t: int) -> Room:
        """Return what a block has room for."""
        return self.new_room

    def live_room(self, ints: Ints, t: int) -> Room:
        """Return what it needs room for: that of a snapshot."""
        return self.new_room

    def grow(self, model: HasBlocks, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Do what ``learn`` asked for with DECISION_DUE or GROW_FIRST; return the events of it.

        row, index: of the record in its run, and of the model in its table, for events.
        """
        msg = f"outcome={reason} of learning must be LEARNED: blocks of this learner never grow"
        raise GroveError(msg)

    def event_of(self, words: Floats, row: int, index: int) -> Event:
        """Return the event of what ``learn`` has grown (GREW), words: float64[EVENT_WORDS + class]."""
        msg = f"row={row} must not have let a block grow: blocks of this learner never do"
        raise GroveError(msg)

    def prepare(self, ints: Ints, t: int) -> Floats:
        """Return what ``answer`` needs to know of a frozen block that it does not count (float64[n])."""
        return np.zeros(1)

    def takes_attributes(self, ints: Ints, t: int) -> bool:
        """Return whether a block may still take in attributes that are new to the schema."""
        return True

    def undecided_weight(self, ints: Ints, t: int) -> float:
        """Return the weight of labels before which nothing depends on how many attributes there are.

        As long may a feature be added before its first value comes. Negative: answers depend on it already,
        as where subsets of the attributes are drawn.
        """
        return -1.0

    def summary(self, ints: Ints, t: int) -> BlockSummary:
        """Return size and counters."""
        return BlockSummary()

    def nodes(self, ints: Ints, t: int) -> int:
        """Return the number of nodes, cheaply; places of absent branches may be among them."""
        return 1

    def has_stopped(self, ints: Ints, t: int) -> bool:
        """Return whether it reached the caps of the spec."""
        return False

    def next_test(self, ints: Ints, t: int, x: Floats, unknown: Any) -> int:
        """Return the column that the next test on a record's way needs, -1: the record is at its end.

        x: float64[d]; unknown: bool[d], the columns that a value may come for. Only of learners that have
        paths (``Learner.has_paths``).
        """
        return -1

    def explain(
        self, schema: Schema, ints: Ints, t: int, x: Floats, place: int | None = None
    ) -> tuple[Branch, ...]:
        """Return the branches that lead a record to its prediction; place: where it ended, if known."""
        return ()

    def thresholds(self, model: HasBlocks) -> dict[str, tuple[float, ...]]:
        """Return the thresholds of numeric attributes by name, if all records meet the same ones."""
        return {}

    def play(self, model: HasBlocks, stretch: Stretch, index: int) -> list[Event]:
        """Learn the rows of a stretch, and answer them if it says so, as if row by row; return the events.

        Only of learners that set PLAN_STRETCH. The model's counters stay as they are: rows are counted
        afterwards, one by one. Events come in the order of rows. index: of the model in its table.
        """
        msg = f"{stretch.first} must not begin a stretch: blocks of this learner take row by row"
        raise GroveError(msg)

    @abstractmethod
    def outline(self, model: HasBlocks, t: int, depth: int | None) -> Iterator[Outline]:
        """Yield the nodes, parents first; below ``depth`` nothing is listed. What is no tree has one."""

    def problems(self, model: HasBlocks, t: int) -> Iterator[str]:
        """Yield what is wrong with a block that is sound, in sentences."""
        yield from ()


@dataclass(frozen=True, slots=True)
class Learner(Parameters, ABC):
    """A learner's parameters; its file has a subclass ``Plugin``."""

    family: ClassVar[str] = "learners"
    kernels: ClassVar[str | None] = None
    """The module of its kernels, None: its own. Learners may share one."""
    unit_weights: ClassVar[bool] = False
    """It counts records: one with another weight than 1 is refused."""
    has_paths: ClassVar[bool] = False
    """Its blocks route a record by tests, of one attribute each (``BlockLayout.next_test``)."""

    @abstractmethod
    def blocks(self, dims: Dimensions) -> BlockLayout:
        """Return the layout of its blocks for records of these dimensions."""

    @property
    def max_bytes(self) -> float:
        """Return the bytes that a model may take; a parameter of learners that have one."""
        return float(1 << 30)

    @property
    def compat(self) -> str | None:
        """Return the published code whose quirks it has; a parameter of learners that have some."""
        return None

    @property
    def max_classes(self) -> int | None:
        """Return how many classes it is defined for, None: any number."""
        return None

    @property
    def acquirer(self) -> Any:
        """Return what buys features if the spec does not say, None: nothing (active/acquirers/base.py)."""
        return None

    def check_schema(self, schema: Schema) -> None:
        """Raise SchemaError if it cannot learn such records."""

    @property
    def default_range(self) -> tuple[float, float]:
        """Return between which values those of a numeric attribute lie whose schema says nothing."""
        return 0.0, 1.0

    def plugins(self) -> list[tuple[int, Parameters]]:
        """Return plug-ins it is made of, each with the word of the plan that is to hold its kind.

        The word behind that says where the plug-in's parameters lie.
        """
        return []

    def write_plan(self, ints: Ints, floats: Floats, dims: Dimensions, blocks: Any) -> None:
        """Write the words of the plan that are the learner's own; all others are written."""

    def shared_words(self, dims: Dimensions) -> int:
        """Return how many words all blocks of a model share, at PLAN_SHARED; new ones are zeros.

        More attributes add words at the end.
        """
        return 0

    @property
    def compiled_with(self) -> tuple[str, ...]:
        """Return modules whose entry kernels it calls, besides those that all specs need."""
        return ()

    @classmethod
    def build(cls, given: dict[str, Any], named: str) -> Any:
        """Return the learner with these parameters; ``named``: as the spec calls it."""
        return made_of(cls, given, named)


def build(body: dict[str, Any]) -> Any:
    """Return the learner that a spec describes."""
    given = dict(body)
    name = given.pop("name")
    return registry.plugin("learners", name).build(given, name)


def workspace_of(columns: int, classes: int) -> Floats:
    """Return the workspace of runs with so many columns and classes, float64[3, …].

    Its rows are those of kernels: one for the numeric attributes, ``scratch``, ``vote_buffer``.
    """
    own = max(4 * columns, 2 * classes, EVENT_WORDS + classes)
    return np.empty((3, own + 3 * columns + 2 * classes + SPARE_WORDS))


@functools.cache
def modules() -> tuple[str, ...]:
    """Return the modules of kernels of all learners; a position in it is the kind kernels branch on."""
    return tuple(sorted({_module_name(name) for name in registry.names("learners")}))


def _module_name(name: str) -> str:
    module = registry.module("learners", name)
    kernels: str | None = module.Plugin.kernels
    return kernels or module.__name__


def kernels_of(learner: Learner) -> ModuleType:
    """Return the module with the kernels of a learner."""
    return importlib.import_module(_module_name(learner.name))


def modules_of(learner: Learner) -> tuple[str, ...]:
    """Return the modules that kernels are compiled for in a plan with this learner."""
    return _module_name(learner.name), type(learner).__module__, *learner.compiled_with


def kind_of(learner: Learner) -> int:
    """Return the integer that stands for a learner's kernels in compiled code."""
    return modules().index(_module_name(learner.name))


INLINED: Final = (
    "core.learners.hoeffding.kernels",
    "core.learners.baselines.majority_class",
    "core.learners.baselines.no_change",
)
"""Modules of kernels that are taken in where they are called: most models are trees, and a call would be much
of what a baseline does. All others are called through addresses."""


def _inlined(function: str) -> frozenset[int]:
    if function not in ("answer", "learn", "uncertainty"):
        return frozenset()
    return frozenset(kind for kind, name in enumerate(modules()) if name in INLINED)


@functools.cache
def _dispatch(function: str, parameters: str, signature: str, otherwise: int | None = None) -> Any:
    members = [(kind, importlib.import_module(name)) for kind, name in enumerate(modules())]
    for _, module in members:
        if otherwise is None and not hasattr(module, function):
            msg = f"{module.__name__} must have the kernel {function}({parameters}): every learner has one"
            raise GroveError(msg)
    return registry.dispatch_to(
        members, f"core.learners.{function}", parameters, otherwise, signature, _inlined(function)
    )


def dispatcher() -> tuple[Any, Any, Any]:
    """Return ``answer(kind, …)``, ``learn(kind, …)`` and ``route_ahead(kind, …)`` over all learners."""
    common, types = (
        "plan, params, ints, floats, t, place, x, xs",
        f"{WORDS}, int64, int64, {FLOATS}, {FLOATS}",
    )
    return (
        _dispatch(
            "answer",
            f"{common}, weight, prepared, scratch, shares",
            f"UniTuple(int64, 3)({types}, float64, int64, {FLOATS}, {FLOATS})",
        ),
        _dispatch(
            "learn",
            f"{common}, label, weight, hint, scratch, vote_buffer",
            f"UniTuple(int64, 2)({types}, int64, float64, int64, {FLOATS}, {FLOATS})",
        ),
        _dispatch(
            "route_ahead",
            "plan, ints, floats, t, xs, d, ends",
            f"boolean({INTS}, {INTS}, {FLOATS}, int64, {FLOATS}, int64, {INTS})",
            otherwise=False,
        ),
    )


def uncertainty_dispatcher() -> Any:
    """Return ``uncertainty(kind, …)`` over all learners."""
    return _dispatch(
        "uncertainty",
        "plan, params, ints, floats, t, place, shares, scratch, columns",
        f"UniTuple(float64, 3)({WORDS}, int64, int64, {FLOATS}, {FLOATS}, int64)",
    )


def has_leaf_table(learner: Learner) -> bool:
    """Return whether a learner offers its leaves as a table."""
    return hasattr(kernels_of(learner), "leaf_table")


def leaf_table_dispatcher() -> Any:
    """Return ``leaf_table(kind, …)`` over the learners that have it."""
    members = [(kind, importlib.import_module(name)) for kind, name in enumerate(modules())]
    signature = f"UniTuple(int64, 4)({INTS}, {INTS}, int64, int64)"
    parameters = "plan, ints, t, place"
    return registry.dispatch_to(members, "core.learners.leaf_table", parameters, signature=signature)


def problem_dispatcher() -> Any:
    """Return ``block_problem(kind, …)`` over all learners."""
    return _dispatch(
        "block_problem",
        "plan, params, ints, floats, t, blank_address",
        f"int64({WORDS}, int64, int64)",
        otherwise=0,
    )
