"""Query strategies: how useful a label would be; asked only while the budget is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core import registry, spelling
from core.errors import ParameterError
from core.kernels.jit import FLOATS, INTS
from core.learners.protocol import Learner, has_leaf_table
from core.plugin import Parameters
from core.tree.layout import LEAVES

NO: Final = 0
YES: Final = 1
AT_RANDOM: Final = 2
"""Yes, independently of the record's features: its label may represent records that are not asked for."""
UNKNOWN: Final = 0.0
"""The probability of a strategy that does not decide at random, or never asks for some records: its labels
have no importance."""


@dataclass(frozen=True, slots=True)
class Query(Parameters):
    """Decides at answering time, per record; asked only while the budget is open (ALGORITHMS section 9.1).

    The module's kernel ``decide(plan, params, at, ints, floats, state, limit, share, lead, weight, classes,
    t)`` returns NO, YES or AT_RANDOM, and how likely it was to ask for the label of a record like this one,
    given all that was before: above 0 whatever the record looks like, or UNKNOWN for all of them. It gets its
    parameters at ``params[at:]``, its state at ``floats[state:]``, the budget's limit, the columns that it
    names, of the place where the record ended (``uncertainty`` in core/learners/protocol.py), the number of
    known classes (at least 2), and the record's number t. It may read the model's header but changes its own
    state alone. Keys of random draws are in the plan: ``plan[PLAN_QUERY_KEY]`` and its neighbours. One with a
    state has ``problem(params, at, ints, floats, state) -> int``, too, which says what is wrong with it
    (core/plugin.py). One by whose order others may rank has ``score(share, lead, weight, classes, t)``.

    One with the column LEAVES has instead of ``decide`` the kernel ``decide_at_leaf(plan, params, at, ints,
    floats, state, limit, table, stride, leaves, leaf, t)``: it gets the table of leaves and the record's row
    in it (``leaf_table`` in core/learners/protocol.py), and goes with learners that have one.
    """

    family: ClassVar[str] = "queries"

    sampled_detection: ClassVar[bool] = False
    """The drift detector sees a label that was asked for only if it was asked for at random."""

    @property
    def columns(self) -> int:
        """Return what it goes by: SHARE, LEAD and WEIGHT (core/tree/layout.py), 0: it looks at no place.

        LEAVES: it looks at all leaves.
        """
        return 0

    def check(self, learner: Learner) -> None:
        """Raise ParameterError if it cannot go with a learner."""
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
    """Return the names of all learners, as specs write them."""
    return tuple(spelling.of_spec("learners", name) for name in registry.names("learners"))


def dispatcher() -> Any:
    """Return ``decide(kind, …)`` over all strategies that look at one place at most."""
    return registry.dispatch(
        "queries",
        "decide",
        "plan, params, at, ints, floats, state, limit, share, lead, weight, classes, t",
        signature=f"Tuple((int64, float64))({INTS}, {FLOATS}, int64, {INTS}, {FLOATS}, int64, float64,"
        " float64, float64, float64, float64, int64)",
    )


def leaf_dispatcher() -> Any:
    """Return ``decide_at_leaf(kind, …)`` over those that look at all leaves."""
    return registry.dispatch(
        "queries",
        "decide_at_leaf",
        "plan, params, at, ints, floats, state, limit, table, stride, leaves, leaf, t",
        signature=f"Tuple((int64, float64))({INTS}, {FLOATS}, int64, {INTS}, {FLOATS}, int64, float64, int64,"
        " int64, int64, int64, int64)",
    )


def problem_dispatcher() -> Any:
    """Return ``problem(kind, …)`` over the strategies that have it."""
    return registry.dispatch(
        "queries",
        "problem",
        "params, at, ints, floats, state",
        otherwise=0,
        signature=f"int64({FLOATS}, int64, {INTS}, {FLOATS}, int64)",
    )
