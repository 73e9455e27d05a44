"""Plan words: the part of a plan that kernels read, in one buffer for all schemas of the same dimensions.

Schemas that differ only in names, or in the order in which values came, have the same words: ten thousand
models that met their values in ten thousand orders read the same cache lines.
"""

from __future__ import annotations

import logging
from typing import ClassVar, Final

import numpy as np

from core import class_weights, registry
from core.kernels import jit
from core.kernels.records import offset
from core.layout.curve import CURVE_WORDS
from core.layout.measures import measure_words
from core.layout.model import (
    WORD,
    ModelHeader,
    NumbersSeen,
    code_bits,
    evaluation_words,
    window_bits_at,
)
from core.layout.plan import NOMINAL_FIELDS, PlanRecord
from core.layout.published import CALIBRATION_HEAD, CONFORMAL_WORDS
from core.learners import dispatch
from core.numeric import rng
from core.plugin import Parameters
from core.schema import shared
from core.schema.dimensions import Dimensions
from core.spec import Spec
from core.tree import allocation


def plugins_of(spec: Spec) -> list[tuple[int, Parameters]]:
    """Return the plug-ins of a spec except the learner, each with the word that holds its kind."""
    return [
        (offset(PlanRecord, "drift"), spec.drift),
        (offset(PlanRecord, "strategy"), spec.query),
        (offset(PlanRecord, "budgeting"), spec.budget),
        (offset(PlanRecord, "inputs"), spec.inputs),
        *([] if spec.calibration is None else [(offset(PlanRecord, "calibrator"), spec.calibration)]),
        *spec.learner.plugins(),
    ]


def calibration_words(spec: Spec, classes: int) -> int:
    """Return the words of the section of a calibrator with room for a number of classes."""
    return 0 if spec.calibration is None else CALIBRATION_HEAD + classes * len(spec.calibration.initial())


def compiled_modules(spec: Spec) -> frozenset[str]:
    """Return the modules for which kernels are compiled before a plan of a spec exists."""
    plugins = (type(plugin).__module__ for _, plugin in plugins_of(spec))
    acquiring = spec.acquirer.compiled_with if spec.acquirer is not None else ()
    return frozenset([*plugins, *dispatch.modules_of(spec.learner), *acquiring])


logger = logging.getLogger(__name__)

SLOW: Final = 0.5
"""Seconds of compiling or loading from which on a log line reports it."""


class PlanWords:
    """The words of the plans of a spec and of the schemas with these dimensions."""

    _tally: ClassVar[shared.Tally] = shared.TALLY

    def __init__(
        self, spec: Spec, dims: Dimensions, is_roomy: bool = False, weights: tuple[float, ...] = ()
    ) -> None:
        """Write the words.

        is_roomy: the names of the schemas take at most NAMES_SHARE of ``max_bytes``; weights: given class
        weights by code, or none.
        """
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
        numeric_table = PlanRecord.SIZE
        nominal_table = numeric_table + len(numeric)
        ranges = nominal_table + NOMINAL_FIELDS * len(nominal)
        first_parameter = ranges + 2 * len(numeric)
        words = first_parameter + sum(map(len, constants)) + len(learner.constants())
        of_sets = () if spec.conformal is None else spec.conformal.constants()
        words += len(self.blocks.offsets) + len(weights) + len(of_sets)
        self.ints = ints = allocation.aligned_words(words)
        self.floats = floats = ints.view(np.float64)
        jit.register(ints)
        self.address = ints.ctypes.data

        self.record = plan = PlanRecord(ints, floats, 0)
        plan.attributes = dims.attributes
        plan.numeric = len(numeric)
        plan.nominal = len(nominal)
        plan.values = dims.values
        plan.classes = dims.classes
        plan.contiguous = numeric == tuple(range(len(numeric)))
        plan.open_values = dims.open
        plan.halves = dims.halves
        plan.numeric_table = numeric_table
        ints[numeric_table:nominal_table] = numeric
        plan.nominal_table = nominal_table
        for number, column in enumerate(nominal):
            entry = plan.nominal_column(number)
            entry.column, entry.first, entry.room = column, dims.value_places[column][0], dims.rooms[number]
        plan.ranges = ranges
        limits = floats[ranges:first_parameter].reshape(len(numeric), 2)
        limits[:] = learner.default_range
        for column, limit in enumerate(dims.ranges) if any(dims.ranges) else ():
            if limit is not None:
                limits[column] = limit
        self._write_sections()
        plan.window = spec.evaluation.window
        plan.code_bits = code_bits(dims.classes)
        plan.code_shift = code_bits(dims.classes).bit_length() - 1
        plan.every = spec.evaluation.every
        plan.measure_words = plan.curve - plan.measures
        plan.curve_words = plan.inputs_state - plan.curve
        plan.input_words = plan.calibration - plan.inputs_state
        plan.calibration_words = plan.conformal - plan.calibration
        plan.calibrator_words = 0 if spec.calibration is None else len(spec.calibration.initial())
        plan.conformal_words = plan.shared - plan.conformal
        plan.publishes = plan.calibration_words + plan.conformal_words > 0
        plan.window_bits = plan.evaluation + window_bits_at(dims.classes, spec.evaluation.window)
        for name, stream in KEYS.items():
            setattr(plan, name, np.uint64(rng.stream_key(spec.seed, stream)).view(np.int64))
        plan.slice = spec.evaluation.slice
        plan.sampled_detection = spec.query.sampled_detection
        plan.columns = spec.query.columns
        plan.score = spec.query.score_kind
        plan.weighting = class_weights.kind_of(spec.class_weights)
        plan.explain = spec.explain
        position = first_parameter
        places.append(offset(PlanRecord, "learner"))
        kinds.append(dispatch.kind_of(learner))
        constants.append(learner.constants())
        for place, kind, values in zip(places, kinds, constants, strict=True):
            ints[place] = kind
            ints[place + 1] = position
            floats[position : position + len(values)] = values
            position += len(values)
        plan.arrays = position
        ints[position : position + len(self.blocks.offsets)] = self.blocks.offsets
        plan.class_weights = position + len(self.blocks.offsets)
        floats[plan.class_weights : plan.class_weights + len(weights)] = weights
        plan.conformal_at = plan.class_weights + len(weights)
        floats[plan.conformal_at : plan.conformal_at + len(of_sets)] = of_sets
        if is_roomy:
            sections = int(plan.blocks) * WORD
            sure = ((1.0 - NAMES_SHARE) * learner.max_bytes - sections) / spec.most_blocks
            plan.sure_words = max(int(min(sure, MOST_BYTES)), 0) // WORD
        learner.write_plan(ints, floats, dims, self.blocks)
        if spec.drift.name != "none" or spec.explain or spec.class_weights is not None or plan.publishes:
            # A detector may replace the block, rows are explained singly, and weights, probabilities and sets
            # change with each label.
            plan.stretch = 0
        self._size = shared.INTERNED + ints.nbytes + WORDS_BYTES
        self._tally.hold(self._size)

    def __del__(self) -> None:
        """Subtract the words' size from the tally: the last plan that used them is freed."""
        self._tally.give_up(self._size)

    def _write_sections(self) -> None:
        """Write where a model's sections begin; these positions do not depend on the blocks."""
        spec, plan = self.spec, self.record
        position = ModelHeader.SIZE
        for name, size in (
            ("detector_state", len(spec.drift.initial())),
            ("query_state", len(spec.query.initial())),
            ("budget_state", len(spec.budget.initial())),
            ("evaluation", evaluation_words(self.dims.classes, spec.evaluation.window)),
            ("values_seen", len(self.dims.nominal)),
            ("numbers_seen", NumbersSeen.SIZE * len(self.dims.numeric) if spec.explain else 0),
            ("measures", measure_words(self.dims.classes) if spec.evaluation.per_class else 0),
            ("curve", CURVE_WORDS if spec.evaluation.worth > 0.0 else 0),
            ("inputs_state", spec.inputs.words(self.dims)),
            ("calibration", calibration_words(spec, self.dims.classes)),
            ("conformal", 0 if spec.conformal is None else CONFORMAL_WORDS),
            ("shared", spec.learner.shared_words(self.dims)),
            ("blocks", 0),
        ):
            setattr(plan, name, position)
            position += size


KEYS: Final = {
    "query_key": rng.QUERY_DECISION,
    "coin_key": rng.SPLIT_COIN,
    "threshold_key": rng.RANDOMISED_THRESHOLD,
    "slice_key": rng.EVALUATION_SLICE,
    "reservoir_key": rng.RESERVOIR,
    "theta_key": rng.THETA_SAMPLING,
    "hypothesis_key": rng.HYPOTHESIS_SAMPLING,
    "exploration_key": rng.EXPLORATION,
    "subspace_key": rng.SUBSPACE,
    "bagging_key": rng.BAGGING,
    "leaf_bagging_key": rng.LEAF_BAGGING,
}
"""The stream of random numbers of each key of a plan."""

NAMES_SHARE: Final = 0.25
MOST_BYTES: Final = float(1 << 60)
"""Larger than any block."""

WORDS_BYTES: Final = 3000
"""Bytes of the objects around the words: arrays, shapes of trees, places of values."""
