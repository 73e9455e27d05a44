"""Input: windows of records against a reference, by distances of binned features, with bounded false alarms.

The first 8 · ``bins`` records give the edges of bins with about equal shares; the next ``reference`` records
are counted as the reference; then each window of ``window`` records is compared with it. At an alarm the
detector begins again, so that the changed inputs become the reference.

*False alarms.* Window k has the level alpha / (k (k + 1)), where k counts over the whole life of a model.
Within a window the tests of all features share the level by Holm's procedure. The levels add up to alpha, and
Bonferroni's inequality needs no independence: inputs that never change lead to any alarm at all with a
probability of at most alpha, at whatever time one looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.errors import ParameterError
from core.inputs.base import InputDetector
from core.inputs.input.distances import (
    HELLINGER,
    KS,
    PSI,
    compare,
    level_of,
    smallest_p_value,
)
from core.inputs.input.rows import (
    ANSWER_ROWS,
    cells_of,
    clear_window,
    feature_row,
    make_edges,
    row_at,
    steps,
    take_in,
)
from core.kernels.jit import kernel, words_at
from core.layout.inputs import (
    COMPARING,
    COUNTING,
    FIRST_ROW,
    NEW,
    SAMPLE_OF_BIN,
    SAMPLING,
    FeatureRow,
    InputState,
    row_words,
)
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord, plan_at
from core.plugin import Parameters, choice, count, flag, number
from core.problems import MOST
from core.schema.dimensions import Dimensions

PROBLEMS: Final = (
    "counters must be from 0 to 2**53, and the phase from new (0) to comparing (3)",
    "records must be at most those of the phase, and the phase must end at its number of records",
    "counts of a feature must be at most the records of their phase",
)

DISTANCES: Final = {"ks": KS, "psi": PSI, "hellinger": HELLINGER}


@dataclass(frozen=True, slots=True)
class Plugin(InputDetector):
    """Compares windows of inputs with a reference, without labels, in a list beside a detector of errors.

    ``{"drift": [{"name": "adwin"}, {"name": "input", "window": 500, "reference": 2000, "bins": 10}]}``. An
    alarm has the level ``input`` and lists the features that moved. It changes no tree. With ``open_records``
    the labels of the next records are requested although the budget is closed; they count as spent
    afterwards. Frozen models are not watched: nothing of them changes.

    All p-values are bounds for small windows, too (Wei and Dudley 2012; Hoeffding 1963); the tests of a
    window share its level (Holm 1979). ``distance`` and ``least`` set how far a feature must have
    moved in addition, for windows so large that they show differences of no importance.
    """

    NUMBERS: ClassVar[tuple[str, ...]] = (
        "open_records",
        "open_share",
        "window",
        "reference",
        "bins",
        "features",
        "least",
        "alpha",
        "scores",
        "distance",
    )

    window: int = count(500, at_least=50, at_most=1_000_000)
    """Records of a window that is compared with the reference."""
    reference: int = count(2000, at_least=50, at_most=10_000_000)
    """Records of the reference."""
    bins: int = count(10, at_least=4, at_most=64)
    """Bins of a number. A category has four times as many cells, which further categories share."""
    features: int = count(100, at_least=1, at_most=10_000)
    """Number of first attributes that are watched; each takes 8 + 64 · `bins` bytes of a model."""
    distance: str = choice("ks", "ks", "psi", "hellinger")
    """Distance that must be at least `least`; an alarm reports all three."""
    least: float = number(0.0, at_least=0.0)
    """Smallest distance of a feature's values that is an alarm, such as 0.1 of PSI; 0: any that is proven."""
    alpha: float = number(0.01, above=0.0, below=1.0)
    """Probability that inputs which never change lead to any alarm, over all features and all time."""
    scores: bool = flag(False)
    """Whether probability and class of the answers are watched, too. Both change while a model learns."""

    def __post_init__(self) -> None:
        """Check the parameters, separately and together."""
        InputDetector.__post_init__(self)
        if self.distance != "psi" and self.least > 1.0:
            msg = (
                f"least={self.least} must be at most 1 with distance={self.distance!r}, which is at most 1; "
                "lower it, or take 'psi'"
            )
            raise ParameterError(msg)

    def words(self, dims: Dimensions) -> int:
        """Return the words of the counters and of a row for each feature that is watched."""
        rows = min(dims.attributes, self.features) + (ANSWER_ROWS if self.scores else 0)
        return FIRST_ROW + rows * row_words(self.bins)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of NUMBERS."""
        return (*InputDetector.constants(self), float(DISTANCES[self.distance]))

    def continues(self, before: Parameters) -> bool:
        """Return whether counts under ``before`` mean the same: all sizes are equal."""
        sizes = ("window", "reference", "bins", "features", "scores")
        return isinstance(before, Plugin) and all(getattr(self, s) == getattr(before, s) for s in sizes)


SHIFT_WORDS: Final = 8
"""Numbers of a shift: its fields in their order."""

InputParameters: Any = Plugin.record()
"""The record of the parameters, for kernels that get no dispatched ``p``."""


@kernel
def take(plan: PlanRecord, p, state: InputState, x, shares, predicted: int) -> int:
    """Count a record after its answer."""
    take_in(plan, p, state, x, shares, predicted)
    return 0


@kernel
def end_phase(plan: PlanRecord, p, state: InputState) -> int:
    """Begin the next phase or window; return 1 if the window that ends differs: ``begin_again`` is due."""
    phase = state.phase
    if phase == NEW:
        state.phase, state.ends = SAMPLING, SAMPLE_OF_BIN * int(p.bins)
        return 0
    if phase == COMPARING:
        state.comparisons += 1
        smallest, tests = smallest_p_value(plan, p, state)
        if tests > 0 and smallest * tests <= level_of(p, state.comparisons):
            return 1
    state.records = 0
    for step in range(steps(plan, p)):
        number, is_category = row_at(plan, p, step)
        if number >= 0 and phase == COMPARING:
            clear_window(cells_of(feature_row(p, state, number), int(p.bins), is_category))
        elif number >= 0 and phase == SAMPLING and not is_category:
            make_edges(feature_row(p, state, number), int(p.bins))
    if phase == SAMPLING:
        state.phase, state.ends = COUNTING, int(p.reference)
    elif phase == COUNTING:
        state.phase, state.ends = COMPARING, int(p.window)
    return 0


@kernel("void(int64, int64, float64[:, ::1])", alone=True)
def read_shifts(plan_address: int, address: int, out) -> None:
    """Write the shift of each row after a window that differs; out: float64[row, field of Shift], zeros."""
    plan = plan_at(plan_address)
    p, state = InputParameters(plan.ints, plan.floats, plan.inputs_at), state_at(plan, address)
    for step in range(steps(plan, p)):
        number, is_category = row_at(plan, p, step)
        if number >= 0:
            shift = compare(p, feature_row(p, state, number), is_category)
            out[number, 0] = shift.ks
            out[number, 1] = shift.psi
            out[number, 2] = shift.hellinger
            out[number, 3] = shift.p
            out[number, 4] = shift.missing_p
            out[number, 5] = shift.before
            out[number, 6] = shift.now
            out[number, 7] = shift.unseen


@kernel("void(int64, int64)", alone=True)
def begin_again(plan_address: int, address: int) -> None:
    """Begin a sample after an alarm, and request the labels of the next ``open_records``."""
    plan = plan_at(plan_address)
    p, state = InputParameters(plan.ints, plan.floats, plan.inputs_at), state_at(plan, address)
    for place in range(plan.input_words - FIRST_ROW):
        state.rows[place] = 0
    state.phase, state.ends, state.records = SAMPLING, SAMPLE_OF_BIN * int(p.bins), 0
    state.alarms += 1
    state.open = int(p.open_records)


@kernel
def state_at(plan: PlanRecord, address: int) -> InputState:
    """Return the state of the model at an address."""
    ints, floats = words_at(address)
    return ModelHeader(ints, floats, 0).input_state(plan)


@kernel
def problem(plan: PlanRecord, p, state: InputState) -> int:
    for value in (state.comparisons, state.alarms, state.open):
        if not 0 <= value <= MOST:
            return 1
    if not NEW <= state.phase <= COMPARING:
        return 1
    ends, bins = 0, int(p.bins)
    if state.phase == SAMPLING:
        ends = SAMPLE_OF_BIN * bins
    elif state.phase == COUNTING:
        ends = int(p.reference)
    elif state.phase == COMPARING:
        ends = int(p.window)
    if state.ends != ends or not 0 <= state.records <= ends:
        return 2
    for step in range(steps(plan, p)):
        number, is_category = row_at(plan, p, step)
        if number >= 0 and is_bad(p, state, feature_row(p, state, number), is_category):
            return 3
    return 0


@kernel
def is_bad(p, state: InputState, row: FeatureRow, is_category: bool) -> bool:
    """Return whether a row has counts that its phase cannot have; the phase was checked."""
    cells = cells_of(row, int(p.bins), is_category)
    if not 0 <= row.values <= (state.records if state.phase == SAMPLING and not is_category else 0):
        return True
    if state.phase <= SAMPLING and not is_category:
        return False  # the sample may have any values
    before, now = 0, 0
    for i in range(cells.n):
        a, b = cells.before[i], cells.now[i]
        if not 0 <= a <= MOST or not 0 <= b <= MOST:
            return True
        before += a
        now += b
    most_before = state.records if state.phase == COUNTING else int(p.reference)
    most_now = state.records if state.phase == COMPARING else 0
    if state.phase <= SAMPLING:
        most_before = 0
    return before > most_before or now > most_now
