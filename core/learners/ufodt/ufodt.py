"""UFODT: an online decision tree that buys the features of a record one by one, while they are worth it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.kernels.jit import FLOATS, kernel, outlined
from core.layout.learning import COUNTS, GREW, LEARNED
from core.layout.model import Floats, model_of
from core.learners.arrays import Array, ArrayLearner
from core.learners.ufodt import answering, gathering, hypotheses
from core.learners.ufodt import episode as ep
from core.learners.ufodt import words as w
from core.learners.ufodt.blocks import UfodtLayout, arrays_of
from core.learners.ufodt.features import gathered, thresholds
from core.learners.ufodt.shared import ACCOUNT_WORDS, MOST_EPISODES, account_of, gathered_words
from core.learners.ufodt.words import UfodtBlock, UfodtParameters, parameters_of
from core.plugin import choice, count, flag, number
from core.schema.dimensions import Dimensions


@dataclass(frozen=True, slots=True)
class Plugin(ArrayLearner):
    """Utility of features for online decision trees: ``{"name": "ufodt", "criterion": "ec2"}`` (Rahbar, Ye,
    Chen, Chehreghani 2023).

    Each record has an *episode*: parameters are sampled from the posterior, and hypotheses (strings of
    outcomes of all features) with their decision regions are enumerated or sampled. Then the feature with the
    best score per cost is bought until one region is left, or no feature is available, or ``record_budget``
    allows none. The answer is the most probable class given the features bought; the label teaches only these
    features. Every value that a record has may be bought at the ``cost`` of its attribute in the schema. A
    missing value is unavailable, and free.

    A numeric attribute is compared with thresholds: those in the schema; or ``n_thresholds`` evenly spaced
    within the ``range`` there; or else the quantiles that cut its first ``warm_up`` values into equal parts,
    equal quantiles merged. These values come from records whose labels are learned. Each record buys them
    before all other values, as far as ``record_budget`` allows, and they teach nothing else. While no
    attribute has thresholds the answer is the class with most labels. ``discount`` above 0 forgets (Algorithm
    6).

    A model that is asked for an answer alone, and a frozen model, buy nothing: they use all values of the
    record, and theta of the posterior (``answer``). A label that comes after later labels teaches the
    features that an episode at that time would buy.

    In a stream the model asks for features (``"acquire": "utility"``, its default): values that come with the
    record are free, missing values are bought. With ``"acquire": "none"`` it buys among the values of the
    record, as offline.
    """

    NUMBERS: ClassVar[tuple[str, ...]] = tuple(UfodtParameters.FIELDS)

    criterion: str = choice("ec2", *w.CRITERIA)
    """Criterion that the next feature is chosen by: equivalence class edge cutting, information gain,
    uncertainty sampling, or random choice.
    """
    hypotheses: int = count(100, at_least=1, at_most=1 << 20)
    """Hypotheses that an episode samples."""
    enumerate: bool = flag(True)
    """Enumerate the hypotheses if their number is at most ``hypotheses`` or 4,096."""
    prediction: str = choice("posterior", "posterior", "bayes", "region")
    """The class of an episode: by naive Bayes under the posterior (see ``answer``), or under the theta
    sampled for the episode, as published; or the surviving decision region.
    """
    answer: str = choice("geometric", *w.ANSWERS)
    """Theta of the posterior for answers: its geometric mean, its mean, or a sample for each number of
    labels, as the authors test.
    """
    prior: str = choice("uniform", "uniform", "counts")
    """Probabilities of the classes before the first purchase: equal, or by their labels."""
    discount: float = number(0.0, at_least=0.0, at_most=1.0)
    """Share of its knowledge that the model forgets with each label; for drifts 0.01 to 0.2."""
    thresholds: str = choice("exp3", "exp3", "exhaustive")
    """The threshold of a numeric attribute: learned as a bandit's arm, or searched at each question."""
    exp3_rate: float = number(0.01, above=0.0, at_most=1.0)
    """Learning rate of exp3."""
    n_thresholds: int = count(9, at_least=1, at_most=1024)
    """Number of thresholds of a numeric attribute for which the schema has none."""
    warm_up: int = count(50, at_least=2, at_most=100_000)
    """Number of first values that thresholds are made of, for attributes without thresholds and range."""
    feature_selection: bool = flag(False)
    """Let a perceptron select the features that an episode may ask for."""
    selected: int = count(0, at_most=1_000_000)
    """Number of selected features; 0: half of them, two at least."""
    exploration: float = number(0.2, at_least=0.0, at_most=1.0)
    """Share of the episodes that ask among random features."""
    step: float = number(0.2, above=0.0)
    """Step of the perceptron."""
    radius: float = number(10.0, above=0.0)
    """Largest norm of the perceptron's weights."""
    record_budget: float = number(0.0, at_least=0.0)
    """Maximum of the cost of a record's features; 0: unlimited."""

    arrays: ClassVar[tuple[Array, ...]] = ()

    @property
    def acquirer(self) -> Any:
        """Return the acquirer that asks for features in a stream."""
        return registry.plugin("acquirers", "utility")()

    @property
    def compiled_with(self) -> tuple[str, ...]:
        """Return the module of open episodes, which request features in a stream."""
        return ("core.learners.ufodt.open_episode",)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of UfodtParameters."""
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
        k = sum(map(len, thresholds(dims, self.n_thresholds)))
        return arrays_of(k, sum(gathered(dims)) * self.n_thresholds)

    def shared_words(self, dims: Dimensions) -> int:
        """Return the words of the account, and the gathered words of attributes without thresholds."""
        size = gathered_words(self.n_thresholds, self.warm_up)
        return ACCOUNT_WORDS + dims.attributes + sum(gathered(dims)) * size

    def masses(self, arrays: dict[str, Any], classes: int) -> Floats:
        labels: Floats = arrays["labels"]
        return labels


@kernel(f"int64(PlanRecord, UfodtBlock, {FLOATS}, {FLOATS})", alone=True)
def play(plan, block, x, shares) -> int:
    """Run an episode in a block over a record; return the class, and write its shares."""
    episode, account = block.episode(plan), account_of(plan, block)
    number = account.episodes & (MOST_EPISODES - 1)
    account.episodes = number + 1
    ep.begin(plan, block, episode, number, parameters_of(plan).record_budget)
    words = hypotheses.workspace(plan, episode)
    best = ep.play(plan, episode, x, hypotheses.space_in(words), shares)
    if parameters_of(plan).by_posterior != 0.0:
        best = answering.answer_observed(plan, block, episode, shares)
    ep.enter(plan, block, episode)
    words[0] = 0  # the workspace is alive up to here
    return best


play_here: Any = outlined(play)


@kernel(f"int64(PlanRecord, UfodtBlock, Row, {FLOATS})", alone=True)
def take_in(plan, block, row, shares) -> int:
    """Let a block learn a record from the episode of its answer, or else from a replayed one.

    Returns the number of attributes that got thresholds.
    """
    answering_block = UfodtBlock(block.ints, block.floats, model_of(block).first)
    episode = answering_block.episode(plan)
    is_first = block.start == answering_block.start
    if is_first:
        if not ep.fits(plan, block, episode, row.x):
            account_of(plan, block).replayed += 1
            play_here(plan, block, row.x, shares)
        episode.state = w.LEARNED
    # Another block learns from the episode of the first block, which has just learned the same record.
    ep.learn(plan, block, episode, row.label, row.weight)
    return gathering.learn(plan, block, episode) if is_first else 0


take_in_here: Any = outlined(take_in)


@kernel
def answer(plan, block: UfodtBlock, place: int, row, prepared: int, scratch, shares) -> tuple[int, int, int]:
    """Buy the features that are worth it and write the shares; a frozen model uses all values of the record.

    An open episode in the block (open_episode.py:answer_next) has made its purchases already.
    """
    if prepared != COUNTS:
        return answer_frozen_here(plan, block, row.x, shares), 0, -1
    if block.episode(plan).state == w.OPEN:
        return answer_open_here(plan, block, shares), 0, -1
    return play_here(plan, block, row.x, shares), 0, -1


@kernel(f"int64(PlanRecord, UfodtBlock, {FLOATS})", alone=True)
def answer_open(plan, block, shares) -> int:
    """Answer the open episode in a block as it is; return the class, and write its shares."""
    episode = block.episode(plan)
    words = hypotheses.workspace(plan, episode)
    space = hypotheses.space_in(words)
    if episode.classes > 0:
        hypotheses.build(plan, episode, space)
    best = ep.answer(plan, episode, space, shares)
    if parameters_of(plan).by_posterior != 0.0:
        best = answering.answer_observed(plan, block, episode, shares)
    ep.enter(plan, block, episode)
    words[0] = 0  # the workspace is alive up to here
    return best


answer_open_here: Any = outlined(answer_open)


@kernel(f"int64(PlanRecord, UfodtBlock, {FLOATS}, {FLOATS})", alone=True)
def answer_frozen(plan, block, x, shares) -> int:
    """Answer without buying (core/learners/ufodt/answering.py)."""
    return answering.answer_frozen(plan, block, x, shares)


answer_frozen_here: Any = outlined(answer_frozen)


@kernel
def learn(plan, block: UfodtBlock, place: int, row, hint: int, work) -> tuple[int, int]:
    """Learn a record; after growth ``work.votes`` holds how many attributes got thresholds, and have none."""
    n_new = take_in_here(plan, block, row, work.votes)
    if n_new == 0:
        return LEARNED, 0
    work.votes[0], work.votes[1] = n_new, gathering.left(plan, block)
    return GREW, 0


@kernel
def uncertainty(
    plan, block: UfodtBlock, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    """Return the largest share of the answer, its lead, and the weight of the labels."""
    labels, weight, largest, second = block.labels(plan), 0.0, 0.0, 0.0
    for c in range(model_of(block).classes):
        weight += labels[c]
        second = max(second, min(shares[c], largest))
        largest = max(largest, shares[c])
    return (largest, largest - second, weight) if weight > 0.0 else (0.5, 0.0, 0.0)
