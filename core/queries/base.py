"""Query strategies: a pure question after the budget has said that a label may be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core import registry
from core.plugin import Parameters

NO: Final = 0
YES: Final = 1
AT_RANDOM: Final = 2
"""Yes, and whatever the record looks like: its label may stand for those that are not asked for."""
UNKNOWN: Final = 0.0
"""The chance of a strategy that does not draw, or never asks for some: its labels stand for nobody."""


@dataclass(frozen=True, slots=True)
class Query(Parameters):
    """Decides at answering time, per record; asked only while the budget is open (ALGORITHMS section 9.1).

    The module's kernel ``decide(plan, knobs, at, ints, floats, state, limit, node, leaf, t)`` returns NO, YES
    or AT_RANDOM, and how likely it was to ask for the label of a record like this one, given all that was
    before: above 0 whatever the record looks like, or UNKNOWN for all of them. It gets its parameters at
    ``knobs[at:]``, its state at ``floats[state:]``, the budget's limit, the first words of the node where the
    record ended and of its leaf record (-1: an inner node, which happens under MOA's routing), and the
    record's number t. It may read the whole model but changes its own state alone. Keys of random draws are
    in the plan: ``plan[PLAN_QUERY_KEY]`` and its neighbours.
    """

    family: ClassVar[str] = "queries"

    drawn_detection: ClassVar[bool] = False
    """The drift detector sees a label that was asked for only if it was asked for at random."""

    def initial(self) -> tuple[float, ...]:
        """Return the state of a new model."""
        return ()


def dispatcher() -> Any:
    """Return ``decide(kind, …)`` over all strategies."""
    parameters = "plan, knobs, at, ints, floats, state, limit, node, leaf, t"
    return registry.dispatch("queries", "decide", parameters)
