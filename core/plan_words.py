"""Plan words: the part of a plan that kernels read, in one buffer for all schemas of the same dimensions.

Schemas that differ only in names, or in the order in which values came, have the same words: ten thousand
models that met their values in ten thousand orders read the same cache lines.
"""

from __future__ import annotations

import logging
from typing import ClassVar, Final

import numpy as np

from core import registry
from core.kernels import jit
from core.learners import protocol
from core.numeric import rng
from core.plugin import Parameters
from core.schema import shared
from core.schema.dimensions import Dimensions
from core.spec import Spec
from core.tree import allocation
from core.tree import layout as at


def plugins_of(spec: Spec) -> list[tuple[int, Parameters]]:
    """Return the plug-ins of a spec except the learner, each with the word that holds its kind."""
    return [
        (at.PLAN_DRIFT, spec.drift),
        (at.PLAN_STRATEGY, spec.query),
        (at.PLAN_BUDGETING, spec.budget),
        *spec.learner.plugins(),
    ]


def compiled_modules(spec: Spec) -> frozenset[str]:
    """Return the modules for which kernels are compiled before a plan of a spec exists."""
    plugins = (type(plugin).__module__ for _, plugin in plugins_of(spec))
    asked = spec.acquirer.compiled_with if spec.acquirer is not None else ()
    return frozenset([*plugins, *protocol.modules_of(spec.learner), *asked])


logger = logging.getLogger(__name__)

SLOW: Final = 0.5
"""Seconds of compiling or loading from which on a log line reports it."""


class PlanWords:
    """The words of the plans of a spec and of the schemas with these dimensions."""

    _tally: ClassVar[shared.Tally] = shared.TALLY

    def __init__(self, spec: Spec, dims: Dimensions, is_roomy: bool = False) -> None:
        """Write the words; is_roomy: the names of the schemas take at most NAMES_SHARE of ``max_bytes``."""
        self._size = 0
        self.spec = spec
        self.dims = dims
        learner = spec.learner
        self.blocks = learner.blocks(dims)
        """The layout of the models' blocks."""
        numeric, nominal = dims.numeric, dims.nominal

        plugins = plugins_of(spec)
        # The words hold the kinds of plug-ins; kernels call these without a check, so they must be compiled
        # by then.
        seconds = jit.compile_for(compiled_modules(spec))
        if seconds > SLOW:
            logger.info("kernels of %s were compiled or loaded in %.1f s", learner.spelled, seconds)
        kinds = [registry.kind(plugin.family, plugin.name) for _, plugin in plugins]
        places = [word for word, _ in plugins]
        constants = [plugin.constants() for _, plugin in plugins]
        numeric_table = at.PLAN_HEADER
        nominal_table = numeric_table + len(numeric)
        ranges = nominal_table + at.NOMINAL_FIELDS * len(nominal)
        first_parameter = ranges + 2 * len(numeric)
        words = first_parameter + sum(map(len, constants)) + len(learner.constants())
        words += len(self.blocks.offsets)
        self.ints = ints = allocation.aligned_words(words)
        self.floats = floats = ints.view(np.float64)
        jit.register(ints)
        self.address = ints.ctypes.data

        ints[at.PLAN_ATTRIBUTES] = dims.attributes
        ints[at.PLAN_NUMERIC] = len(numeric)
        ints[at.PLAN_NOMINAL] = len(nominal)
        ints[at.PLAN_VALUES] = dims.values
        ints[at.PLAN_CLASSES] = dims.classes
        ints[at.PLAN_CONTIGUOUS] = numeric == tuple(range(len(numeric)))
        ints[at.PLAN_OPEN_VALUES] = dims.open
        ints[at.PLAN_HALVES] = dims.halves
        ints[at.PLAN_NUMERIC_TABLE] = numeric_table
        ints[numeric_table:nominal_table] = numeric
        ints[at.PLAN_NOMINAL_TABLE] = nominal_table
        table = ints[nominal_table:ranges].reshape(len(nominal), at.NOMINAL_FIELDS)
        table[:, at.NOMINAL_COLUMN] = nominal
        table[:, at.NOMINAL_FIRST] = [dims.value_places[column][0] for column in nominal]
        table[:, at.NOMINAL_ROOM] = dims.rooms
        ints[at.PLAN_RANGES] = ranges
        limits = floats[ranges:first_parameter].reshape(len(numeric), 2)
        limits[:] = learner.default_range
        for column, given in enumerate(dims.ranges) if any(dims.ranges) else ():
            if given is not None:
                limits[column] = given
        self._write_sections()
        ints[at.PLAN_WINDOW] = spec.evaluation.window
        ints[at.PLAN_CODE_BITS] = at.code_bits(dims.classes)
        ints[at.PLAN_CODE_SHIFT] = at.code_bits(dims.classes).bit_length() - 1
        ints[at.PLAN_EVERY] = spec.evaluation.every
        ints[at.PLAN_WINDOW_BITS] = ints[at.PLAN_EVALUATION]
        ints[at.PLAN_WINDOW_BITS] += at.window_bits_at(dims.classes, spec.evaluation.window)
        for word, stream in (
            (at.PLAN_QUERY_KEY, rng.QUERY_DECISION),
            (at.PLAN_COIN_KEY, rng.SPLIT_COIN),
            (at.PLAN_THRESHOLD_KEY, rng.RANDOMISED_THRESHOLD),
            (at.PLAN_SLICE_KEY, rng.EVALUATION_SLICE),
            (at.PLAN_RESERVOIR_KEY, rng.RESERVOIR),
            (at.PLAN_THETA_KEY, rng.THETA_SAMPLING),
            (at.PLAN_HYPOTHESIS_KEY, rng.HYPOTHESIS_SAMPLING),
            (at.PLAN_EXPLORATION_KEY, rng.EXPLORATION),
            (at.PLAN_SUBSPACE_KEY, rng.SUBSPACE),
            (at.PLAN_BAGGING_KEY, rng.BAGGING),
            (at.PLAN_LEAF_BAGGING_KEY, rng.LEAF_BAGGING),
        ):
            ints[word] = np.uint64(rng.stream_key(spec.seed, stream)).view(np.int64)
        ints[at.PLAN_SLICE] = spec.evaluation.slice
        ints[at.PLAN_SAMPLED_DETECTION] = spec.query.sampled_detection
        ints[at.PLAN_COLUMNS] = spec.query.columns
        ints[at.PLAN_EXPLAIN] = spec.explain
        position = first_parameter
        places.append(at.PLAN_LEARNER)
        kinds.append(protocol.kind_of(learner))
        constants.append(learner.constants())
        for word, kind, values in zip(places, kinds, constants, strict=True):
            ints[word] = kind
            ints[word + 1] = position
            floats[position : position + len(values)] = values
            position += len(values)
        ints[at.PLAN_ARRAYS] = position
        ints[position : position + len(self.blocks.offsets)] = self.blocks.offsets
        if is_roomy:
            sections = int(ints[at.PLAN_BLOCKS]) * at.WORD
            sure = ((1.0 - NAMES_SHARE) * learner.max_bytes - sections) / spec.most_blocks
            ints[at.PLAN_SURE_WORDS] = max(int(min(sure, MOST_BYTES)), 0) // at.WORD
        learner.write_plan(ints, floats, dims, self.blocks)
        if spec.drift.name != "none" or spec.explain:
            ints[at.PLAN_STRETCH] = 0  # a detector may replace the block; rows are explained singly
        self._size = shared.INTERNED + ints.nbytes + WORDS_BYTES
        self._tally.hold(self._size)

    def __del__(self) -> None:
        """Subtract the words' size from the tally: the last plan that used them is freed."""
        self._tally.give_up(self._size)

    def _write_sections(self) -> None:
        """Write where a model's sections begin; these positions do not depend on the blocks."""
        spec, ints = self.spec, self.ints
        position = at.MODEL_HEADER
        for word, size in (
            (at.PLAN_DETECTOR, len(spec.drift.initial())),
            (at.PLAN_QUERY, len(spec.query.initial())),
            (at.PLAN_BUDGET, len(spec.budget.initial())),
            (at.PLAN_EVALUATION, at.evaluation_words(self.dims.classes, spec.evaluation.window)),
            (at.PLAN_VALUES_SEEN, len(self.dims.nominal)),
            (at.PLAN_NUMBERS_SEEN, at.SEEN_FIELDS * len(self.dims.numeric) if spec.explain else 0),
            (at.PLAN_SHARED, spec.learner.shared_words(self.dims)),
            (at.PLAN_BLOCKS, 0),
        ):
            ints[word] = position
            position += size


NAMES_SHARE: Final = 0.25
MOST_BYTES: Final = float(1 << 60)
"""Larger than any block."""

WORDS_BYTES: Final = 3000
"""Bytes of the objects around the words: arrays, shapes of trees, places of values."""
