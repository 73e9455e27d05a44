"""Query strategies: how useful a label would be; called only while the budget is open."""

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
"""Yes, independently of the record's features: its label may represent records without a request."""
UNKNOWN: Final = 0.0
"""Probability of strategies that are not random, or never request some records: no importance."""


@dataclass(frozen=True, slots=True)
class Query(Parameters):
    """Decides at answering time, per record; called only while the budget is open (ALGORITHMS 9.1).

    The module's kernel ``decide(plan, params, at, ints, floats, state, limit, share, lead, weight, classes,
    t)`` returns NO, YES or AT_RANDOM, and the probability of a request for a record like this one, given all
    earlier records: above 0 for all records, or UNKNOWN for all of them. Its parameters are at
    ``params[at:]``, its state at ``floats[state:]``. It gets the budget's limit, the columns that the
    strategy declares, at the place where the record ended (``uncertainty`` in core/learners/protocol.py), the
    number of known classes (at least 2), and the record's number t. It may read the model's header but
    changes its own state alone. Keys of random draws are in the plan: ``plan[PLAN_QUERY_KEY]`` and its
    neighbours. A strategy with a state also has ``problem(params, at, ints, floats, state) -> int``, which
    returns the number of a sentence if the state is invalid (core/plugin.py). A strategy that can rank
    records has ``score(share, lead, weight, classes, t)``.

    A strategy with the column LEAVES has, instead of ``decide``, the kernel ``decide_at_leaf(plan, params,
    at, ints, floats, state, limit, table, stride, leaves, leaf, t)``. It gets the table of leaves and the
    record's row in it (``leaf_table`` in core/learners/protocol.py), and supports learners that have such a
    table.
    """

    family: ClassVar[str] = "queries"

    sampled_detection: ClassVar[bool] = False
    """Whether the drift detector uses a requested label only if it was requested at random."""

    @property
    def columns(self) -> int:
        """Return the columns that the kernel uses: SHARE, LEAD and WEIGHT (core/tree/layout.py), 0: none.

        LEAVES: the table of all leaves.
        """
        return 0

    def check(self, learner: Learner) -> None:
        """Raise ParameterError if the strategy does not support a learner."""
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
    """Return ``decide_at_leaf(kind, …)`` over the strategies that look at all leaves."""
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
