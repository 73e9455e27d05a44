"""Layout of a plan: the words that kernels read besides the model, the same for all models of a plan."""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel, words_at
from core.kernels.records import Record, Words, word


class PlanRecord(Record):
    """The words of a plan. A position is relative to the plan, unless it is one in the model.

    A plug-in has two words: its kind, and the position of its numeric parameters. Random keys are the bits of
    a uint64.
    """

    is_constant = True

    attributes: int = word("attributes of the schema")
    numeric: int = word("numeric attributes")
    nominal: int = word("nominal attributes")
    values: int = word("room for values of all nominal attributes")
    classes: int = word("classes that there is room for")
    contiguous: int = word("1: the numeric attributes are the first columns")
    open_values: int = word("1: some attribute takes in new values")
    quirks: int = word("bits of the active quirks (core/tree/quirks.py)")
    numeric_table: int = word("position: column of each numeric attribute")
    nominal_table: int = word("position: a NominalColumn for each nominal attribute")
    detector_state: int = word("position in the model: the drift detector's state")
    query_state: int = word("position in the model: the query strategy's state")
    budget_state: int = word("position in the model: the budget's state")
    evaluation: int = word("position in the model: the EvaluationCounters")
    values_seen: int = word("position in the model: values seen of each nominal attribute")
    blocks: int = word("position in the model: first word after the sections")
    window: int = word("records of the evaluation window")
    code_bits: int = word("bits of a class code in the window")
    every: int = word("labels between two evaluation events")
    query_key: int = word("random key of query decisions")
    numeric_observer: int = word("kind of the observer of numeric attributes")
    numeric_observer_at: int = word("position of its parameters")
    nominal_observer: int = word("kind of the observer of nominal attributes")
    nominal_observer_at: int = word("position of its parameters")
    criterion: int = word("kind of the split criterion")
    criterion_at: int = word("position of its parameters")
    leaf_model: int = word("kind of the leaf model")
    leaf_model_at: int = word("position of its parameters")
    drift: int = word("kind of the drift detector")
    drift_at: int = word("position of its parameters")
    strategy: int = word("kind of the query strategy")
    strategy_at: int = word("position of its parameters")
    budgeting: int = word("kind of the budget")
    budgeting_at: int = word("position of its parameters")
    null_merit: int = word('1 (MOA): "do not split" has a merit like any test; else minus infinity')
    compiled: int = word(
        "1: attempts are decided in compiled code (core/learners/hoeffding/split_decision.py)"
    )
    code_shift: int = word("binary logarithm of code_bits")
    schedule: int = word("kind of the schedule of split attempts")
    schedule_at: int = word("position of its parameters")
    schedule_state: int = word("first word of the schedule's state in a leaf record")
    schedule_ranked: int = word("1: the schedule needs the ranking of an attempt that failed")
    gap: float = word("gap that a leaf needs for a split (HoeffdingLearner.limits)")
    tie: float = word("gap at or below which two tests are tied (HoeffdingLearner.limits)")
    incremental: int = word("1: the criterion can update an impurity by one record (core/criteria/base.py)")
    coin_key: int = word("random key of the coin between two strategies")
    threshold_key: int = word("random key of randomised thresholds")
    slice_key: int = word("random key of the records reserved for the evaluation")
    slice: int = word("block length of reserved records, one per block; 0: none")
    sampled_detection: int = word("1: the detector sees only requested labels that were sampled at random")
    quick_reject: int = word(
        "1: an approximate ranking is possible (core/learners/hoeffding/quick_reject.py)"
    )
    explain: int = word("1: predictions come with their path of branches")
    bound: int = word("kind of the confidence bound")
    bound_at: int = word("position of its parameters")
    tau: float = word("tie threshold, 0: ties are never broken")
    shared: int = word("position in the model: the words that all blocks share")
    revision: int = word("first word of the Revision in a leaf record; 0: splits are final")
    revisit: float = word("weight between two evaluations of an inner node")
    last_of_two: int = word("1: of two classes with equal weight the majority is the second")
    halves: int = word("1: all attributes are nominal, with room for two values each")
    route_ahead: int = word("kind of tests for routing ahead (core/tree/prefetch.py)")
    ranges: int = word("position: a NumericRange for each numeric attribute")
    watches: int = word("1: the schedule watches inner nodes, too")
    inherited: int = word("1: bounds count inherited weight, too [D8]")
    counted: int = word("number of attributes in bounds; CDT's code also counts the class")
    sorts: int = word("1: the criterion leaves the class masses of branches sorted (core/criteria/base.py)")
    learner: int = word("kind of the learner's kernels")
    learner_at: int = word("position of its parameters")
    columns: int = word("bits of the columns that the query strategy uses")
    arrays: int = word("position: offsets in the learner's blocks (BlockLayout.offsets)")
    window_bits: int = word("position in the model: the bits of the evaluation window")
    reservoir_key: int = word("random key of the reservoirs in which leaves keep records")
    node_detector: int = word("kind of the detectors that watch nodes, or the leaves of a schedule")
    node_detector_at: int = word("position of their parameters")
    leaf_model_state: int = word("first word of the leaf model's state in a leaf record")
    theta_key: int = word("random key of posterior samples")
    hypothesis_key: int = word("random key of sampled hypotheses")
    exploration_key: int = word("random key of other exploration")
    sure_words: int = word("words of a block that is surely within max_bytes, for any names in the schema")
    max_leaves: int = word("number of leaves at which a tree stops growing")
    plain_splits: int = word("1: splits are made in compiled code (core/learners/hoeffding/plain_split.py)")
    first_attempt: float = word("observed weight before which no new leaf is due")
    blank_leaf: int = word("address of an unused leaf record")
    subspace_key: int = word("random key of the attributes that a leaf or a member sees")
    bagging_key: int = word("random key of the number of times that a member learns a record")
    warning_detector: int = word("kind of the detectors that warn of a member")
    warning_detector_at: int = word("position of their parameters")
    stretch: int = word("most rows that the learner takes at once (BlockLayout.play); 0: none")
    numbers_seen: int = word("position in the model: a NumbersSeen for each numeric attribute")
    measures: int = word("position in the model: the MeasureSums")
    measure_words: int = word("words of this section, 0: measures are not kept")
    curve: int = word("position in the model: the LearningCurve")
    curve_words: int = word("words of this section, 0: no learning curve is kept")
    inputs: int = word("kind of the input detector")
    inputs_at: int = word("position of its parameters")
    inputs_state: int = word("position in the model: the InputState")
    input_words: int = word("words of this section, 0: inputs are not watched")
    subtrees: int = word("first word of the Subtree in a node record; 0: none")
    subtree_detector: int = word("kind of the detectors that watch subtrees")
    subtree_detector_at: int = word("position of their parameters")
    leaf_bagging: int = word("number of times that a leaf learns a record: one of BAGGED_…")
    leaf_bagging_key: int = word("random key of these numbers")
    switch_logarithm: float = word("ln(2/δ) of the comparison with an alternate tree")
    switch_records: float = word("records that both windows must exceed for this comparison")
    review: int = word(
        "labels between two reviews of a forest's leaves (core/learners/forest/growth.py); 0: none"
    )
    weighting: int = word("how labels are weighted by class (core/class_weights.py)")
    class_weights: int = word("position: the given weight of each class")
    against_none: int = word("1: the best test is compared with no split, not with the second best test")
    judges: int = word("1: the schedule gets the errors of a leaf's votes")
    score: int = word("kind of the score of the answer that the strategy uses (core/active/scores.py)")
    calibrator: int = word("kind of the calibrator of the classes")
    calibrator_at: int = word("position of its parameters")
    calibration: int = word("position in the model: the Calibration")
    calibration_words: int = word("words of this section, 0: class shares are not calibrated")
    calibrator_words: int = word("words of the state of each class")
    conformal: int = word("position in the model: the ConformalState")
    conformal_words: int = word("words of this section, 0: answers have no sets")
    conformal_at: int = word("position of the parameters of the sets")
    publishes: int = word("1: answers have calibrated probabilities or sets")

    def nominal_column(self, number: int) -> NominalColumn:
        """Return the entry of a nominal attribute, by its number among the nominal attributes."""
        start = self.nominal_table + number * NOMINAL_FIELDS
        return NominalColumn(self.ints, self.floats, start)

    def numeric_column(self, number: int) -> int:
        """Return the column of a numeric attribute, by its number among the numeric attributes."""
        return self.ints[self.numeric_table + number]

    def numeric_range(self, number: int) -> NumericRange:
        """Return the range of a numeric attribute, by its number among the numeric attributes."""
        return NumericRange(self.ints, self.floats, self.ranges + number * RANGE_FIELDS)

    def parameters(self, position: int) -> Words:
        """Return the numeric parameters of the plug-in whose parameters begin at a position."""
        return Words(self.ints, self.floats, position)

    def has(self, quirk: int) -> bool:
        """Return whether a quirk is active (core/tree/quirks.py)."""
        return (self.quirks & quirk) != 0


class NominalColumn(Record):
    """The entry of a nominal attribute in the plan's nominal table."""

    is_constant = True

    column: int = word("column of the attribute in a record")
    first: int = word("first value of the attribute on the value axis")
    room: int = word("number of values that there is room for")


NOMINAL_FIELDS: Final = NominalColumn.SIZE


class NumericRange(Record):
    """The range of a numeric attribute: of the schema, or else of the learner."""

    low: float = word("lower end")
    high: float = word("upper end")


RANGE_FIELDS: Final = NumericRange.SIZE

# Number of times that a leaf learns a record
BAGGED_ONCE: Final = 0
BAGGED_POISSON: Final = 1
"""A Poisson variate of mean 1, at least 1."""
BAGGED_MOA: Final = 2
"""The same, from MOA's generator."""


@kernel
def plan_at(address: int) -> PlanRecord:
    """Return the plan at an address."""
    ints, floats = words_at(address)
    return PlanRecord(ints, floats, 0)
