"""Query strategies: a pure question after the budget has said that a label may be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.plugin import Parameters


@dataclass(frozen=True, slots=True)
class Query(Parameters):
    """Decides at answering time, per record; asked only while the budget is open (ALGORITHMS section 9.1).

    The module's kernel ``decide(knobs, at, floats, state, limit, share, key, t) -> bool`` gets its parameters
    at ``knobs[at:]``, its state at ``floats[state:]``, the budget's limit, the largest class share at the
    leaf (½ for an empty one), the key of its random draws and the record's number t.
    """

    family: ClassVar[str] = "queries"

    def initial(self) -> tuple[float, ...]:
        """Return the state of a new model."""
        return ()


def dispatcher() -> Any:
    """Return ``decide(kind, …)`` over all strategies."""
    return registry.dispatch("queries", "decide", "knobs, at, floats, state, limit, share, key, t")
