"""UFODT: an online decision tree that buys the features of a record one by one, while they are worth it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from core import registry
from core.kernels.jit import WORDS, kernel, outlined, start_of
from core.learners.arrays import Array, ArrayLearner, array_at
from core.learners.ufodt import answering, gathering, hypotheses
from core.learners.ufodt import episode as ep
from core.learners.ufodt import words as w
from core.learners.ufodt.blocks import UfodtLayout, arrays_of
from core.plugin import choice, count, flag, number
from core.schema.dimensions import Dimensions
from core.tree import layout as at
from core.tree.layout import Floats


@dataclass(frozen=True, slots=True)
class Plugin(ArrayLearner):
    """Utility of features for online decision trees: ``{"name": "ufodt", "criterion": "ec2"}`` (Rahbar, Ye,
    Chen, Chehreghani 2023).

    An *episode* for each record: parameters are drawn from the posterior, hypotheses (strings of outcomes of
    all features) with their decision regions are enumerated or sampled, and the feature with the best score
    per cost is bought until one region is left, or nothing that can be had, or nothing that ``record_budget``
    allows. The class is the most probable one given what was bought; the label teaches what was bought,
    nothing else. Every value that a record has may be bought at the ``cost`` its attribute has in the schema;
    what is missing is unavailable, and free.

    A numeric attribute is compared with thresholds: those in the schema, or ``n_thresholds`` evenly within
    the ``range`` there, or else where they cut its first ``warm_up`` values into equal parts, equal ones
    merged. These values are those of records whose labels are learned; each record buys them before anything
    else, as far as ``record_budget`` reaches, and they teach nothing else. While no attribute has thresholds
    the answer is the class with most labels. ``discount`` above 0 forgets (Algorithm 6).

    A model that is asked for an answer alone, and a frozen one, buys nothing: it takes all that the record
    has, and theta of its posterior (``answer``). A label that comes after other labels teaches what an
    episode of then would buy.

    In a stream it asks for features itself (``"acquire": "utility"``, which is its default): what comes with
    the record is free, what is missing is bought. With ``"acquire": "none"`` it buys among what comes with
    the record, as offline.
    """

    criterion: str = choice("ec2", *w.CRITERIA)
    """What the next feature is chosen by: equivalence class edge cutting, information gain, uncertainty
    sampling, or at random."""
    hypotheses: int = count(100, at_least=1, at_most=1 << 20)
    """Hypotheses that an episode samples."""
    enumerate: bool = flag(True)
    """Enumerate them, if they are no more than that or 4,096."""
    prediction: str = choice("posterior", "posterior", "bayes", "region")
    """The class of an episode: by naive Bayes under the posterior (as ``answer`` has it), or under the theta
    drawn for the episode, as published; or the decision region that survives."""
    answer: str = choice("geometric", *w.ANSWERS)
    """Theta of the posterior that a class is answered by: its geometric mean, its mean, or a draw for each
    number of labels, as the authors test."""
    prior: str = choice("uniform", "uniform", "counts")
    """Probabilities of the classes before anything is bought: equal, or by their labels."""
    discount: float = number(0.0, at_least=0.0, at_most=1.0)
    """Share of what it knows that a label makes it forget; for drifts 0.01 to 0.2."""
    thresholds: str = choice("exp3", "exp3", "exhaustive")
    """The threshold of a numeric attribute: learned as a bandit's arm, or searched at each question."""
    exp3_rate: float = number(0.01, above=0.0, at_most=1.0)
    """Learning rate of exp3."""
    n_thresholds: int = count(9, at_least=1, at_most=1024)
    """Thresholds of a numeric attribute that the schema gives none."""
    warm_up: int = count(50, at_least=2, at_most=100_000)
    """First values of a numeric attribute without thresholds and range, of which thresholds are made."""
    feature_selection: bool = flag(False)
    """Let a perceptron choose the features that an episode may ask for."""
    selected: int = count(0, at_most=1_000_000)
    """How many; 0: half of them, two at least."""
    exploration: float = number(0.2, at_least=0.0, at_most=1.0)
    """Share of the episodes that ask among features drawn at random."""
    step: float = number(0.2, above=0.0)
    """Step of the perceptron."""
    radius: float = number(10.0, above=0.0)
    """Largest norm of its weights."""
    record_budget: float = number(0.0, at_least=0.0)
    """What the features of a record may cost; 0: anything."""

    arrays: ClassVar[tuple[Array, ...]] = ()

    @property
    def acquirer(self) -> Any:
        """Return what asks for features in a stream."""
        return registry.plugin("acquirers", "utility")()

    @property
    def compiled_with(self) -> tuple[str, ...]:
        """Return the module of open episodes, which it asks with."""
        return ("core.learners.ufodt.open_episode",)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of the kernels' words."""
        return (
            float(w.CRITERIA.index(self.criterion)),
            float(self.hypotheses),
            float(self.enumerate),
            float(self.prediction == "region"),
            float(self.prior == "counts"),
            self.discount,
            float(self.thresholds == "exp3"),
            self.exp3_rate,
            float(self.feature_selection),
            float(self.selected),
            self.exploration,
            self.step,
            self.radius,
            self.record_budget,
            float(self.warm_up),
            float(w.ANSWERS.index(self.answer)),
            float(self.prediction == "posterior"),
        )

    def blocks(self, dims: Dimensions) -> UfodtLayout:
        return UfodtLayout(self, dims)

    def arrays_for(self, dims: Dimensions) -> tuple[Array, ...]:
        """Return the posterior and the last episode."""
        k = sum(map(len, w.thresholds(dims, self.n_thresholds)))
        return arrays_of(k, sum(w.gathered(dims)) * self.n_thresholds)

    def shared_words(self, dims: Dimensions) -> int:
        """Return the words of the account, and of what is gathered of attributes without thresholds."""
        size = w.gathered_words(self.n_thresholds, self.warm_up)
        return w.ACCOUNT + dims.attributes + sum(w.gathered(dims)) * size

    def masses(self, arrays: dict[str, Any], classes: int) -> Floats:
        found: Floats = arrays["labels"]
        return found


@kernel(f"int64({WORDS}, int64, CPointer(float64), CPointer(float64))", alone=True)
def play(plan, params, ints, floats, t: int, x, shares) -> int:
    """Run an episode in the block at word t over a record; return the class, and write its shares."""
    e = t + plan[plan[at.PLAN_ARRAYS] + w.EPISODE]
    account = plan[at.PLAN_SHARED]
    number = ints[account + w.EPISODES] & ((1 << 62) - 1)
    ints[account + w.EPISODES] = number + 1
    budget = w.parameter(plan, params, w.RECORD_BUDGET)
    ep.begin(plan, params, ints, floats, t, ints, floats, e, number, budget)
    head = np.zeros(hypotheses.SPACE_WORDS, dtype=np.int64)
    hypotheses.lay_out(plan, params, ints, e, start_of(head))
    space = np.empty(head[hypotheses.INTS], dtype=np.int64)
    space[: hypotheses.SPACE_WORDS] = head
    table = np.empty(head[hypotheses.FLOATS])
    best = ep.play(plan, params, ints, floats, e, x, start_of(space), start_of(table), shares)
    if w.parameter(plan, params, w.BY_POSTERIOR) != 0.0:
        best = answering.answer_observed(plan, params, ints, floats, t, ints, floats, e, shares)
    ep.record(plan, ints, floats, ints, floats, e)
    space[0], table[0] = 0, 0.0  # the workspace is alive up to here
    return best


play_here: Any = outlined(play)


@kernel(f"int64({WORDS}, int64, CPointer(float64), int64, float64, CPointer(float64))", alone=True)
def take_in(plan, params, ints, floats, t: int, x, label: int, weight: float, shares) -> int:
    """Let the block at word t learn a record from the episode that it had, or else from another one.

    Returns for how many attributes thresholds were made.
    """
    places = plan[at.PLAN_ARRAYS]
    first = ints[at.MODEL_FIRST]
    e = first + plan[places + w.EPISODE]
    if t == first:
        if not ep.fits(plan, params, ints, ints, floats, e, x):
            ints[plan[at.PLAN_SHARED] + w.REPLAYED] += 1
            play_here(plan, params, ints, floats, t, x, shares)
        ints[e + w.STATE] = w.LEARNED
    # Another block learns from what the first one has bought, which has just learned the same record.
    ep.learn(plan, params, ints, floats, t, ints, floats, e, label, weight)
    return gathering.learn(plan, params, floats, ints, floats, e) if t == first else 0


take_in_here: Any = outlined(take_in)


@kernel
def answer(
    plan, params, ints, floats, t: int, place: int, x, xs, weight: float, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Buy what is worth it and write the shares; a frozen model takes all that the record has.

    An episode that was left open here (open_episode.py:answer_next) has bought what it wanted.
    """
    if prepared != at.COUNTS:
        return answer_frozen_here(plan, params, ints, floats, t, x, shares), 0, -1
    if ints[t + plan[plan[at.PLAN_ARRAYS] + w.EPISODE] + w.STATE] == w.OPEN:
        return answer_open_here(plan, params, ints, floats, t, shares), 0, -1
    return play_here(plan, params, ints, floats, t, x, shares), 0, -1


@kernel(f"int64({WORDS}, int64, CPointer(float64))", alone=True)
def answer_open(plan, params, ints, floats, t: int, shares) -> int:
    """Answer the open episode in the block at word t as it is; return the class, and write its shares."""
    e = t + plan[plan[at.PLAN_ARRAYS] + w.EPISODE]
    head = np.zeros(hypotheses.SPACE_WORDS, dtype=np.int64)
    hypotheses.lay_out(plan, params, ints, e, start_of(head))
    space = np.empty(head[hypotheses.INTS], dtype=np.int64)
    space[: hypotheses.SPACE_WORDS] = head
    table = np.empty(head[hypotheses.FLOATS])
    if ints[e + w.CLASSES] > 0:
        hypotheses.build(plan, params, ints, floats, e, start_of(space), start_of(table))
    best = ep.answer(plan, params, ints, floats, e, start_of(space), start_of(table), shares)
    if w.parameter(plan, params, w.BY_POSTERIOR) != 0.0:
        best = answering.answer_observed(plan, params, ints, floats, t, ints, floats, e, shares)
    ep.record(plan, ints, floats, ints, floats, e)
    space[0], table[0] = 0, 0.0  # the workspace is alive up to here
    return best


answer_open_here: Any = outlined(answer_open)


@kernel(f"int64({WORDS}, int64, CPointer(float64), CPointer(float64))", alone=True)
def answer_frozen(plan, params, ints, floats, t: int, x, shares) -> int:
    """Answer without buying (core/learners/ufodt/answering.py)."""
    return answering.answer_frozen(plan, params, ints, floats, t, x, shares)


answer_frozen_here: Any = outlined(answer_frozen)


@kernel
def learn(
    plan,
    params,
    ints,
    floats,
    t: int,
    place: int,
    x,
    xs,
    label: int,
    weight: float,
    hint: int,
    scratch,
    vote_buffer,
) -> tuple[int, int]:
    made = take_in_here(plan, params, ints, floats, t, x, label, weight, vote_buffer)
    if made == 0:
        return at.LEARNED, 0
    vote_buffer[0], vote_buffer[1] = made, gathering.left(plan, floats)
    return at.GREW, 0


@kernel
def uncertainty(
    plan, params, ints, floats, t: int, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    """Return the largest share of the answer, its lead, and the weight of the labels."""
    labels, weight, largest, second = array_at(plan, t, w.LABELS), 0.0, 0.0, 0.0
    for c in range(ints[at.MODEL_CLASSES]):
        weight += floats[labels + c]
        second = max(second, min(shares[c], largest))
        largest = max(largest, shares[c])
    return (largest, largest - second, weight) if weight > 0.0 else (0.5, 0.0, 0.0)
