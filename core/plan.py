"""Plan: what all models of one spec and one schema share, laid out for the kernels.

A plan is no state. It holds counts, kinds, parameters and the positions of attributes and sections in one
buffer of words; models point to it, so that ten thousand of them read the same cache lines.
"""

from __future__ import annotations

import functools
import threading
from typing import Final

import numpy as np

from core import jit, registry, rng
from core.errors import SchemaError
from core.features import Schema
from core.plugin import Parameters
from core.spec import Spec
from core.tree import foresight
from core.tree import layout as at
from core.tree.layout import TreeShape

_sharing = threading.Lock()

MIN_ROOM = 4
"""Room for values that an open attribute begins with; it doubles."""

MAX_SHAPES: Final = 64
"""Shapes of trees that a plan remembers."""


class Plan:
    """The shared part of the models of a spec and a schema; ``Plan.of`` gives equal two the same object."""

    __slots__ = (
        "__weakref__",
        "_shapes",
        "address",
        "floats",
        "ints",
        "schema",
        "spec",
        "values_index",
    )

    def __init__(self, spec: Spec, schema: Schema) -> None:
        """Lay out the plan of a spec and a schema."""
        spec.learner.check_schema(schema)
        self.spec = spec
        self.schema = schema
        self._shapes: dict[tuple[int, int], TreeShape] = {}
        numeric = [i for i, a in enumerate(schema.attributes) if a.kind == "numeric"]
        nominal = [i for i, a in enumerate(schema.attributes) if a.kind == "nominal"]
        rooms = [_room(len(schema.attributes[i].values), schema.attributes[i].open) for i in nominal]
        firsts = np.concatenate(([0], np.cumsum(rooms, dtype=np.int64))).astype(np.int64)
        self.values_index = {i: (int(firsts[j]), rooms[j]) for j, i in enumerate(nominal)}

        parameters: list[tuple[int, Parameters]] = [
            (at.PLAN_NUMERIC_OBSERVER, spec.learner.numeric_observer),
            (at.PLAN_NOMINAL_OBSERVER, spec.learner.nominal_observer),
            (at.PLAN_CRITERION, spec.learner.criterion),
            (at.PLAN_LEAF_MODEL, spec.learner.leaf_model),
            (at.PLAN_DRIFT, spec.drift),
            (at.PLAN_STRATEGY, spec.query),
            (at.PLAN_BUDGETING, spec.budget),
            (at.PLAN_SCHEDULE, spec.learner.schedule),
            (at.PLAN_BOUND, spec.learner.bound),
        ]
        numeric_table = at.PLAN_HEADER
        nominal_table = numeric_table + len(numeric)
        ranges = nominal_table + at.NOMINAL_FIELDS * len(nominal)
        first_parameter = ranges + 2 * len(numeric)
        constants = [plugin.constants() for _, plugin in parameters]
        words = first_parameter + sum(map(len, constants))
        self.ints = ints = at.aligned_words(words)
        self.floats = floats = ints.view(np.float64)
        jit.register(ints)
        self.address = ints.ctypes.data

        ints[at.PLAN_ATTRIBUTES] = schema.n_attributes
        ints[at.PLAN_NUMERIC] = len(numeric)
        ints[at.PLAN_NOMINAL] = len(nominal)
        ints[at.PLAN_VALUES] = firsts[-1]
        ints[at.PLAN_CLASSES] = schema.n_classes
        ints[at.PLAN_CONTIGUOUS] = numeric == list(range(len(numeric)))
        ints[at.PLAN_OPEN_VALUES] = any(a.open for a in schema.attributes)
        ints[at.PLAN_MOA] = spec.learner.compat is not None
        ints[at.PLAN_NULL_MERIT] = spec.learner.criterion.null_merit_is_gain
        ints[at.PLAN_NUMERIC_TABLE] = numeric_table
        ints[numeric_table:nominal_table] = numeric
        ints[at.PLAN_NOMINAL_TABLE] = nominal_table
        table = ints[nominal_table:ranges].reshape(len(nominal), at.NOMINAL_FIELDS)
        table[:, at.NOMINAL_COLUMN] = nominal
        table[:, at.NOMINAL_FIRST] = firsts[:-1]
        table[:, at.NOMINAL_ROOM] = rooms
        ints[at.PLAN_RANGES] = ranges
        limits = [schema.attributes[i].range or spec.learner.numeric_observer.range for i in numeric]
        floats[ranges:first_parameter] = np.array(limits, dtype=np.float64).reshape(-1)
        self._write_sections()
        ints[at.PLAN_SCHEDULE_AT] = self.shape(1, 1).schedule_at
        floats[at.PLAN_GAP], floats[at.PLAN_TIE] = spec.learner.limits
        ints[at.PLAN_INCREMENTAL] = spec.learner.criterion.is_incremental
        ints[at.PLAN_GLANCE] = spec.learner.can_be_rough
        shape = self.shape(1, 1)
        ints[at.PLAN_REVISION] = shape.revision_at if shape.revision else 0
        floats[at.PLAN_REVISIT] = spec.learner.revisit_weight
        ints[at.PLAN_WATCHES] = spec.learner.watches_inner_nodes
        halves = not numeric and bool(nominal) and all(room == 2 for room in rooms)
        ints[at.PLAN_HALVES] = halves
        if not nominal:
            ints[at.PLAN_FORESIGHT] = foresight.THRESHOLDS
        elif halves and spec.learner.only_multiway and spec.learner.compat is None:
            ints[at.PLAN_FORESIGHT] = foresight.HALVES
        ints[at.PLAN_SCHEDULE_RANKED] = spec.learner.schedule.ranked
        ints[at.PLAN_WINDOW] = spec.evaluation.window
        ints[at.PLAN_CODE_BITS] = at.code_bits(schema.n_classes)
        ints[at.PLAN_CODE_SHIFT] = at.code_bits(schema.n_classes).bit_length() - 1
        ints[at.PLAN_EVERY] = spec.evaluation.every
        for word, stream in (
            (at.PLAN_QUERY_KEY, rng.QUERY_DECISION),
            (at.PLAN_COIN_KEY, rng.SPLIT_COIN),
            (at.PLAN_THRESHOLD_KEY, rng.RANDOMISED_THRESHOLD),
            (at.PLAN_SLICE_KEY, rng.EVALUATION_SLICE),
        ):
            ints[word] = np.uint64(rng.stream_key(spec.seed, stream)).view(np.int64)
        ints[at.PLAN_SLICE] = spec.evaluation.slice
        ints[at.PLAN_DRAWN_DETECTION] = spec.query.drawn_detection
        ints[at.PLAN_EXPLAIN] = spec.explain
        position = first_parameter
        for (word, plugin), values in zip(parameters, constants, strict=True):
            ints[word] = registry.kind(plugin.family, plugin.name)
            ints[word + 1] = position
            floats[position : position + len(values)] = values
            position += len(values)
        # MOA's schedule counts inherited weight: only the learner can tell whether a leaf is due.
        ints[at.PLAN_COMPILED] = spec.learner.compiled and spec.learner.compat is None
        floats[at.PLAN_TAU] = spec.learner.tie_threshold
        ints[at.PLAN_LAST_OF_TWO] = spec.learner.last_of_two

    def _write_sections(self) -> None:
        """Write where a model's sections begin: fixed for a plan, whatever its trees do."""
        spec, ints = self.spec, self.ints
        position = at.MODEL_HEADER
        for word, size in (
            (at.PLAN_DETECTOR, len(spec.drift.initial())),
            (at.PLAN_QUERY, len(spec.query.initial())),
            (at.PLAN_BUDGET, len(spec.budget.initial())),
            (at.PLAN_EVALUATION, at.evaluation_words(self.schema.n_classes, spec.evaluation.window)),
            (at.PLAN_VALUES_SEEN, len(self.values_index)),
            (at.PLAN_SHARED, spec.learner.numeric_observer.shared(int(ints[at.PLAN_NUMERIC]))),
            (at.PLAN_TREES, 0),
        ):
            ints[word] = position
            position += size

    @staticmethod
    def of(spec: Spec, schema: Schema) -> Plan:
        """Return the plan of a spec and a schema."""
        with _sharing:  # else two threads that ask at once would get two
            return _plan(spec, schema)

    def check_room(self) -> None:
        """Refuse a schema of which a model with one leaf is larger than ``max_bytes``.

        All attributes have a place in every leaf, however sparse the records: 40,000 numeric ones and two
        classes take 3.2 MB, so that 1 GiB (the default) is 335 leaves; there growth stops [D1].
        """
        classes = max(self.schema.declared_classes, 1)
        leaf = self.shape_of(classes, int(self.ints[at.PLAN_VALUES]), 1, 1).words * at.WORD
        needed = self.section_bytes(classes) + self.trees * leaf
        if needed > self.spec.learner.max_bytes:
            msg = (
                f"max_bytes={self.spec.learner.max_bytes:.0f} must be at least {needed}, a model of "
                f"{self.trees} leaf of {self.schema.n_attributes} attributes and {classes} classes; "
                "raise it or leave attributes out"
            )
            raise SchemaError(msg)

    @property
    def trees(self) -> int:
        """How many trees a model may have at a time: one, or with a background tree two."""
        drift = self.spec.drift
        return 2 if drift.name != "none" and drift.reaction == "rebuild" else 1

    def tree_bytes(self, classes: int) -> float:
        """Return what a tree may take of ``max_bytes``: an equal part of what the sections leave.

        Each tree has its part, whether there is another one now or not: a background tree must be able to
        grow beside a main tree that cannot, for it is to replace it.
        """
        return (self.spec.learner.max_bytes - self.section_bytes(classes)) / self.trees

    def section_bytes(self, classes: int) -> int:
        """Return the bytes of a model with so many classes that are in no tree."""
        window = self.spec.evaluation.window
        spare = at.evaluation_words(self.schema.n_classes, window) - at.evaluation_words(classes, window)
        return (int(self.ints[at.PLAN_TREES]) - spare) * at.WORD

    def shape(self, nodes: int, slots: int) -> TreeShape:
        """Return the shape of a tree with room for so many nodes and leaf records."""
        # Trees double their room, so that few shapes serve all models; each is asked for at every split.
        shape = self._shapes.get((nodes, slots))
        if shape is None:
            if len(self._shapes) >= MAX_SHAPES:
                self._shapes.clear()
            shape = self._shapes[nodes, slots] = self._make_shape(nodes, slots)
        return shape

    def _make_shape(self, nodes: int, slots: int) -> TreeShape:
        return self.shape_of(self.schema.n_classes, int(self.ints[at.PLAN_VALUES]), nodes, slots)

    def shape_of(self, classes: int, values: int, nodes: int, slots: int) -> TreeShape:
        """Return the shape of a tree for so many classes and values of nominal attributes."""
        learner, counts = self.spec.learner, (classes, int(self.ints[at.PLAN_NUMERIC]), values)
        return TreeShape(
            classes=classes,
            numeric=learner.numeric_observer.shape(*counts),
            nominal=learner.nominal_observer.shape(*counts),
            nodes=nodes,
            slots=slots,
            schedule=learner.schedule.shapes(classes, self.schema.n_attributes, values),
            revision=learner.revision_words(self.schema.n_attributes),
        )


def _room(values: int, is_open: bool) -> int:
    """Return the room for an attribute's values: exact, or for an open attribute the next power of two."""
    return (
        max(MIN_ROOM, 1 << (values - 1).bit_length())
        if is_open and values
        else MIN_ROOM
        if is_open
        else values
    )


@functools.lru_cache(maxsize=4096)
def _plan(spec: Spec, schema: Schema) -> Plan:
    return Plan(spec, schema)
