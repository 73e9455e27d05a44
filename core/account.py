"""What becomes of the labels that a model asks for: each request is open until it is closed, once.

    asked = outstanding + answered + declined + expired

*answered*: its label was learned in time. *declined*: nobody will answer it, or it was never sent.
*expired*: the label did not come in time, or the instance had to be forgotten. A label that is learned after
its request was closed is a label that nobody asked for. The counts are in the model's header; whoever knows
the clock closes requests (`Model.close`, or rows of `ModelTable.learn`), the kernels count what is learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from core.jit import kernel
from core.tree import layout as at
from core.tree.layout import Ints

ANSWERED: Final = -2
DECLINED: Final = -3
EXPIRED: Final = -4
"""Codes in the place of a class that close requests."""
CLOSINGS: Final = (ANSWERED, DECLINED, EXPIRED)

NOT_DRAWN: Final = 0
DRAWN_BY_STRATEGY: Final = 1
DRAWN_FOR_EVALUATION: Final = 2
"""Whether a record was chosen without regard to what it looks like, and by whom."""


@dataclass(frozen=True, slots=True)
class Account:
    """The requests of a model."""

    asked: int
    answered: int
    declined: int
    expired: int
    reserved: int
    """Asked for the evaluation's sake."""
    refused: int
    """Records that the strategy was not asked about, because the budget was closed."""

    @property
    def outstanding(self) -> int:
        """Requests that are open."""
        return self.asked - self.answered - self.declined - self.expired

    @staticmethod
    def of(ints: Ints) -> Account:
        """Return the account in a model's buffer."""
        return Account(
            asked=int(ints[at.MODEL_REQUESTS]),
            answered=int(ints[at.MODEL_REPLIES]),
            declined=int(ints[at.MODEL_DECLINED]),
            expired=int(ints[at.MODEL_EXPIRED]),
            reserved=int(ints[at.MODEL_RESERVED]),
            refused=int(ints[at.MODEL_REFUSED]),
        )


@kernel
def close(ints: Any, how: int, n: int) -> None:
    """Close n requests of a model; how: ANSWERED, DECLINED or EXPIRED."""
    if how == ANSWERED:
        ints[at.MODEL_REPLIES] += n
    elif how == DECLINED:
        ints[at.MODEL_DECLINED] += n
    else:
        ints[at.MODEL_EXPIRED] += n
