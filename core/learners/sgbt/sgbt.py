"""SGBT: gradient boosting; each tree predicts what the scores of the trees before it lack."""

from __future__ import annotations

from dataclasses import dataclass

from core.kernels.jit import kernel
from core.layout.learning import Row, Work
from core.layout.model import Floats, Ints
from core.layout.plan import PlanRecord
from core.learners.protocol import Learner
from core.learners.sgbt import soundness
from core.learners.sgbt.blocks import BoostLayout
from core.learners.sgbt.layout import Boosting
from core.learners.sgbt.residuals import train_here
from core.learners.sgbt.scoring import score_here
from core.plugin import choice, count, flag, number, period
from core.schema.dimensions import Dimensions

PROBLEMS = soundness.PROBLEMS
block_problem = soundness.block_problem

ALIASES = ("streaming_gradient_boosted_trees",)


@dataclass(frozen=True, slots=True)
class Plugin(Learner):
    """Streaming gradient boosted trees: ``"sgbt"`` (Gunasekara, Pfahringer, Gomes and Bifet 2024).

    A class is scored by a committee of ``members`` regression trees. A tree learns (y - p)/(p(1 - p)), with p
    from the scores of the trees before it; its prediction, times ``learning_rate``, is added to the score.
    With two classes there is one committee, with more one for each class against the rest.

    Trees are FIMT-DD's (Ikonomovska, Gama and Džeroski 2011): a leaf predicts its mean target, and is split
    by the test that reduces the variance of the targets most. They see a random share of the attributes. A
    nominal value is a column of 0 and 1; a missing value is left out of the sums, and follows the branch with
    more labelled weight. A leaf keeps the first ``bins`` distinct values of a numeric attribute as
    thresholds, where FIMT-DD keeps all.

    An inner node watches the errors of its tree with a Page-Hinkley test. After an alarm an alternate tree
    grows beside the node; it takes its place once its faded loss is smaller, or is dropped. ``alternates``
    false: subtrees are never replaced. ``max_bytes`` counts alternate trees.

    ``compat="moa"`` adds up the predictions without the learning rate when it answers, and does not limit
    targets.
    """

    members: int = count(100, at_least=1, at_most=1000)
    """Number of trees for each class, one after the other."""
    attributes: float = number(0.75, above=0.0, at_most=1.0)
    """Share of the attributes that a tree sees, two at least."""
    learning_rate: float = number(0.0125, above=0.0, at_most=1.0)
    """Share of a tree's prediction that is added to the score."""
    grace_period: float = period(25.0)
    """Labelled weight between two attempts to split a leaf."""
    delta: float = number(0.05, above=0.0, below=1.0)
    """Probability that a split is not the best one."""
    tau: float = number(0.05, at_least=0.0, at_most=1.0)
    """Bound below which the best split is made with any lead; 0: never."""
    bins: int = count(32, at_least=2, at_most=10_000)
    """Distinct values of a numeric attribute that a leaf keeps as thresholds."""
    alternates: bool = flag(True)
    """Whether an alternate tree grows beside an inner node where errors rise."""
    drift_tolerance: float = number(0.005, at_least=0.0)
    """Deviation of an error from the mean that is ignored; an error of 1 is three standard deviations."""
    drift_threshold: float = number(50.0, above=0.0)
    """Sum of deviations above its minimum that is an alarm."""
    fading: float = number(0.995, above=0.0, at_most=1.0)
    """Factor of the older losses in the loss of a subtree or of its alternate tree."""
    switch_period: float = period(150.0)
    """Labelled weight between two comparisons of an alternate tree with the subtree beside it."""
    drop_period: float = period(1500.0)
    """Labelled weight from which an alternate tree that has not the smaller loss is dropped."""
    max_bytes: float = number(float(1 << 30), at_least=1.0)
    """Bytes of a model at which trees stop growing."""
    compat: str | None = choice(None, None, "moa")
    """The published code whose rules are used."""

    def constants(self) -> tuple[float, ...]:
        """Return the words of BoostParameters."""
        return (
            self.learning_rate,
            self.grace_period,
            self.delta,
            self.tau,
            self.attributes,
            float(self.compat == "moa"),
            float(self.alternates),
            self.drift_tolerance,
            self.drift_threshold,
            self.fading,
            self.switch_period,
            self.drop_period,
        )

    def blocks(self, dims: Dimensions) -> BoostLayout:
        return BoostLayout(self, dims)

    def write_plan(self, ints: Ints, floats: Floats, dims: Dimensions, blocks: BoostLayout) -> None:
        """Give the layout the words of its plan, which explanations pass to compiled code."""
        blocks.plan_words = ints


@kernel
def answer(
    plan: PlanRecord, boosting: Boosting, place: int, row: Row, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Write the class shares; nothing else is written, whether the model is frozen or not."""
    return score_here(plan, boosting, row.x, shares), 0, -1


@kernel
def learn(
    plan: PlanRecord, boosting: Boosting, place: int, row: Row, hint: int, work: Work
) -> tuple[int, int]:
    """Learn a record; return as the place what it may take if the block has to grow first."""
    outcome = train_here(plan, boosting, row)
    return outcome & 3, outcome >> 2


@kernel
def uncertainty(
    plan: PlanRecord, boosting: Boosting, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    """Return the uncertainty of the answer's shares, and the weight of all labels."""
    weight, largest, second = 0.0, 0.0, 0.0
    for c in range(boosting.model.classes):
        weight += boosting.class_weights(plan)[c]
        second = max(second, min(shares[c], largest))
        largest = max(largest, shares[c])
    if largest <= 0.0:
        return 0.5, 0.0, weight
    return largest, largest - second, weight
