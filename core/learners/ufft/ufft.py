"""UFFT: a forest with a tree for each pair of classes; splits by discriminants, a drift detector a node."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

from core import registry
from core.drift.base import Detector
from core.errors import ParameterError
from core.kernels.jit import kernel
from core.kernels.records import offset
from core.layout.learning import Row, Work
from core.layout.model import Floats, Ints
from core.layout.plan import PlanRecord
from core.learners.protocol import Learner
from core.learners.ufft import soundness
from core.learners.ufft.blocks import UfftLayout
from core.learners.ufft.descent import fuse_here
from core.learners.ufft.layout import BAYES, MAJORITY, UNIT, PairForest
from core.learners.ufft.training import train_here
from core.plugin import Parameters, choice, count, made_of, number
from core.schema.dimensions import Dimensions

PROBLEMS = soundness.PROBLEMS
block_problem = soundness.block_problem

LEAF_MODELS: Final = {"mc": MAJORITY, "nb": BAYES, "idbd": UNIT}


@dataclass(frozen=True, slots=True)
class Plugin(Learner):
    """Ultra fast forest of trees: ``{"name": "ufft", "leaf_model": "nb"}`` (Gama, Medas, Rodrigues 2004).

    For each pair of classes that were met there is a binary tree, which learns only the records of these two.
    All trees answer a record: the class with the largest sum of their shares wins; a pair without tree counts
    ½ for both classes. A leaf is evaluated from time to time. Each attribute has one cut, where the normal
    densities of the two classes are equal (quadratic discriminant). The best cut is installed if its
    information gain exceeds the second by sqrt(ln(1/δ)/2n), or if that bound is below ``tau``. The new leaves
    learn those of the tree's last ``memory`` records that reach them; the node keeps its statistics and
    continues to learn. A cut with all of these records on one side is no split. The first evaluation of a new
    leaf comes 100 records after those that it has learned from the memory.

    On the path of each record every node's naive Bayes predicts first, and a detector watches its errors. A
    node that is out of control becomes a leaf again, with the records of the memory since the warning.

    Leaves predict by class shares (``mc``), naive Bayes (``nb``) or a linear unit that learns its step sizes
    (``idbd``); a leaf that has seen nothing predicts like the node above. A nominal value is a column of 0
    and 1. A missing value is left out of the statistics, and follows the branch with more labelled weight. A
    record of weight w counts as w records in statistics, shares and ``n``; a detector counts it as one
    record, and a unit limits weights to 1.

    A pair's tree is planted with the first record of the second of its classes, and begins empty: it learns
    no earlier records, and its memory begins there. The memories of all trees share one ring of rows for each
    class. With 64 classes there are 2,016 trees.
    """

    delta: float = number(5e-6, above=0.0, below=1.0)
    """Probability that a split is not the best one."""
    tau: float = number(5e-3, at_least=0.0)
    """Bound below which the best split is made regardless of the second best gain; 0: never."""
    leaf_model: str = choice("nb", "mc", "nb", "idbd")
    """Prediction of a leaf: class shares, naive Bayes or a linear unit."""
    memory: int = count(1000, at_least=0, at_most=100_000)
    """Records that a tree remembers: new leaves, and nodes after a drift, learn from them."""
    step_share: float = number(1.0 / 6.0, at_least=0.0, at_most=1.0)
    """Least deviation of a class for naive Bayes, as a share of the attribute's step: the smallest difference
    between two successive labelled values, 1 for nominal values. 0: only enough to keep densities finite.
    """
    nmin: str = choice("gap", "gap", "slide")
    """When a leaf is evaluated again: by the gap between the two best gains, or every 265 records."""
    drift: Any = "ddm"
    """The detector of every node, a name or an object as in the spec; ``none``: nodes are never pruned."""
    max_bytes: float = number(float(1 << 30), at_least=1.0)
    """Bytes of a model at which the forest stops growing."""

    def __post_init__(self) -> None:
        """Check the parameters, and make the detector."""
        Parameters.__post_init__(self)
        object.__setattr__(self, "drift", detector_of(self.drift))

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters as a spec writes them."""
        body: dict[str, Any] = {"name": self.spelled}
        body |= {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        body["drift"] = self.drift.to_dict()
        del body["drift"]["reaction"]
        return body

    def constants(self) -> tuple[float, ...]:
        """Return the words of PairForestParameters, and the state of a new detector."""
        return (
            self.delta,
            self.tau,
            float(self.memory),
            float(LEAF_MODELS[self.leaf_model]),
            float(self.nmin == "slide"),
            float(self.drift.name != "none"),
            self.step_share,
            *self.drift.initial(),
        )

    def blocks(self, dims: Dimensions) -> UfftLayout:
        return UfftLayout(self, dims)

    def plugins(self) -> list[tuple[int, Parameters]]:
        return [(offset(PlanRecord, "node_detector"), self.drift)]

    def write_plan(self, ints: Ints, floats: Floats, dims: Dimensions, blocks: UfftLayout) -> None:
        """Give the layout the words of its plan, which explanations pass to compiled code."""
        blocks.plan_words = ints


def detector_of(drift: Any) -> Detector:
    """Return the detector of the nodes that a spec names; its reaction to a drift is fixed."""
    if isinstance(drift, Detector):
        return drift
    body = {"name": drift} if isinstance(drift, str) else drift
    if not isinstance(body, dict) or not isinstance(body.get("name", "ddm"), str):
        msg = f"drift={drift!r} of 'ufft' must be a name or an object with a 'name'"
        raise ParameterError(msg)
    parameters = {"name": "ddm"} | body
    name = parameters.pop("name")
    if "reaction" in parameters:
        msg = (
            f"reaction={parameters['reaction']!r} is no parameter of a node's detector: the node becomes a "
            "leaf; leave it out"
        )
        raise ParameterError(msg)
    detector: Detector = made_of(registry.plugin("drift", name), parameters, name)
    return detector


@kernel
def answer(
    plan: PlanRecord, forest: PairForest, place: int, row: Row, prepared: int, scratch, shares
) -> tuple[int, int, int]:
    """Add up the shares of all trees; nothing else is written, whether the model is frozen or not."""
    return fuse_here(plan, forest, row.x, shares), 0, -1


@kernel
def learn(
    plan: PlanRecord, forest: PairForest, place: int, row: Row, hint: int, work: Work
) -> tuple[int, int]:
    """Learn a record; return as the place how many node records it may take."""
    outcome = train_here(plan, forest, row)
    return outcome & 3, outcome >> 2


@kernel
def uncertainty(
    plan: PlanRecord, forest: PairForest, place: int, shares, scratch, columns: int
) -> tuple[float, float, float]:
    """Return the uncertainty of the fused shares, and the weight of all labels."""
    weight, largest, second = 0.0, 0.0, 0.0
    for c in range(forest.model.classes):
        weight += forest.class_entry(plan, c).weight
        second = max(second, min(shares[c], largest))
        largest = max(largest, shares[c])
    if largest <= 0.0:
        return 0.5, 0.0, weight
    return largest, largest - second, weight
