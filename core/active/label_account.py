"""Label account: every request for a label is open until it is closed, once.

    asked = outstanding + answered + declined + expired

*answered*: its label was learned in time. *declined*: no label will come, or the request was never sent.
*expired*: the label did not come in time, or the instance had to be forgotten. A label that is learned after
its request was closed counts as a label without a request. The counts are in the model's header; the caller,
which has the clock, closes requests (`Model.close`, or rows of `ModelTable.learn`), and the kernels count
learned labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.kernels.jit import kernel
from core.layout.model import Ints, ModelHeader

ANSWERED: Final = -2
DECLINED: Final = -3
EXPIRED: Final = -4
"""Codes that close requests, in the place of a class code."""
CLOSINGS: Final = (ANSWERED, DECLINED, EXPIRED)

NOT_SAMPLED: Final = 0
SAMPLED_BY_STRATEGY: Final = 1
SAMPLED_FOR_EVALUATION: Final = 2
"""Whether a record was sampled independently of its features, and for what."""


@dataclass(frozen=True, slots=True)
class Account:
    """The requests of a model."""

    asked: int
    answered: int
    declined: int
    expired: int
    reserved: int
    """Requests for the evaluation."""
    refused: int
    """Records that the strategy did not score, because the budget was closed."""

    @property
    def outstanding(self) -> int:
        return self.asked - self.answered - self.declined - self.expired

    @staticmethod
    def of(ints: Ints) -> Account:
        """Return the account in a model's buffer."""
        return Account.in_header(ModelHeader.read(ints))

    @staticmethod
    def in_header(model: ModelHeader) -> Account:
        """Return the account in a header that ``ModelHeader.read`` returned."""
        return Account(
            asked=model.requests,
            answered=model.replies,
            declined=model.declined,
            expired=model.expired,
            reserved=model.reserved,
            refused=model.refused,
        )


@kernel
def close(model: ModelHeader, how: int, n: int) -> None:
    """Close n requests of a model; how: ANSWERED, DECLINED or EXPIRED."""
    if how == ANSWERED:
        model.replies += n
    elif how == DECLINED:
        model.declined += n
    else:
        model.expired += n
