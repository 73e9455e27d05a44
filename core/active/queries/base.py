"""Query strategies: how useful a label would be; called only while the budget is open."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Final, NamedTuple

from core import registry, spelling
from core.active import scores
from core.errors import ParameterError
from core.kernels.records import name_tuple
from core.layout.learning import LEAVES, VOTES
from core.learners.dispatch import has_leaf_table
from core.learners.protocol import Learner
from core.plugin import Parameters

NO: Final = 0
YES: Final = 1
AT_RANDOM: Final = 2
"""Yes, independently of the record's features: its label may represent records without a request."""
UNKNOWN: Final = 0.0
"""Probability of strategies that are not random, or never request some records: no importance."""


@dataclass(frozen=True, slots=True)
class Query(Parameters):
    """Decides at answering time, per record; called only while the budget is open.

    The module's kernel ``decide(plan, p, model, state, limit, uncertainty)`` returns NO, YES or AT_RANDOM,
    and the probability of a request for a record like this one, given all earlier records: above 0 for all
    records, or UNKNOWN for all of them. It gets its parameters by name (``p.threshold``), the model's header,
    its state, the budget's limit, and the ``Uncertainty`` of the record, in which the columns are set that
    the strategy declares. It may read the header but changes its own state alone. Keys of random draws are in
    the plan: ``plan.query_key`` and its neighbours. A strategy with a state declares a record for it, and has
    ``problem(p, state) -> int``, which returns the number of a sentence if the state is invalid
    (core/plugin.py). A strategy that can rank records has ``score(uncertainty)``.

    A strategy with the column LEAVES has, instead of ``decide``, the kernel ``decide_at_leaf(plan, p, model,
    state, limit, leaves, number)``. It gets the table of leaves with the record's row in it (``LeafTable`` in
    core/layout/learning.py) and the record's number, and supports learners that have such a table.
    """

    family: ClassVar[str] = "queries"

    sampled_detection: ClassVar[bool] = False
    """Whether the drift detector uses a requested label only if it was requested at random."""

    needs_sets: ClassVar[bool] = False
    """Whether the strategy reads the size of the conformal set of the answer."""

    @property
    def answer_score(self) -> str | None:
        """Return the score of an answer that the strategy uses: its parameter ``score``, if it has one."""
        score: str | None = getattr(self, "score", None)
        return score

    @property
    def score_kind(self) -> int:
        """Return the kind of the score (core/active/scores.py), NONE: not from shares of the answer."""
        return scores.KINDS.get(self.answer_score or "", scores.NONE)

    @property
    def columns(self) -> int:
        """Return the columns of the learner's ``uncertainty`` that the strategy needs, 0: none.

        SHARE, LEAD, WEIGHT and VOTES (core/layout/learning.py); LEAVES: the table of all leaves.
        """
        return scores.columns_of(self.answer_score)

    def check(self, learner: Learner) -> None:
        """Raise ParameterError if the strategy does not support a learner."""
        if self.columns & VOTES and not learner.has_members:
            having = [name for name in learners() if registry.plugin("learners", name).has_members]
            msg = (
                f"score={self.answer_score!r} of query={self.spelled!r} must go with a learner that has "
                f"members ({', '.join(having)}), not with {learner.spelled!r}; take 'least_confidence'"
            )
            raise ParameterError(msg)
        if self.columns & LEAVES and not has_leaf_table(learner):
            having = [name for name in learners() if has_leaf_table(registry.plugin("learners", name)())]
            msg = (
                f"query={self.spelled!r} must go with a learner that has a table of leaves "
                f"({', '.join(having)}), not with {learner.spelled!r}; take another strategy, as 'conf_tree'"
            )
            raise ParameterError(msg)

    def initial(self) -> tuple[float, ...]:
        """Return the state of a new model."""
        return ()


def learners() -> tuple[str, ...]:
    """Return the names of all learners, as specs spell them."""
    return tuple(spelling.of_spec("learners", name) for name in registry.names("learners"))


class Uncertainty(NamedTuple):
    """How sure the model is of a record that it has answered: the input of strategies."""

    share: float
    """Largest class share by the score of the strategy: p̂ of core/active/scores.py."""
    lead: float
    """Lead of the largest class share over the second at the place where the record ended, among the labels
    that it rests on; at most the certainty of the answer by the score."""
    weight: float
    """Weight of these labels."""
    classes: float
    """Number of known classes, at least 2."""
    number: int
    """The record's number: t of the papers."""


name_tuple(Uncertainty, "float64", "float64", "float64", "float64", "int64")

_TYPES = "PlanRecord, Words, ModelHeader, Words, float64"


def _looks_at_one_place(strategy: ModuleType) -> bool:
    return not hasattr(strategy, "decide_at_leaf")


def dispatcher() -> Any:
    """Return ``decide(kind, …)`` over all strategies that look at one place at most."""
    return registry.dispatch(
        "queries",
        "decide",
        "plan, p, model, state, limit, uncertainty",
        needed_by=_looks_at_one_place,
        signature=f"Tuple((int64, float64))({_TYPES}, Uncertainty)",
    )


def leaf_dispatcher() -> Any:
    """Return ``decide_at_leaf(kind, …)`` over the strategies that look at all leaves."""
    return registry.dispatch(
        "queries",
        "decide_at_leaf",
        "plan, p, model, state, limit, leaves, number",
        needed_by=registry.no_plugin,
        signature=f"Tuple((int64, float64))({_TYPES}, LeafTable, int64)",
    )


def score_dispatcher() -> Any:
    """Return ``score(kind, …)`` over the strategies that can rank records."""
    return registry.dispatch("queries", "score", "uncertainty", needed_by=registry.no_plugin)


def problem_dispatcher() -> Any:
    """Return ``problem(kind, …)`` over the strategies that have it."""
    return registry.dispatch(
        "queries",
        "problem",
        "p, state",
        otherwise=0,
        signature="int64(Words, Words)",
    )
