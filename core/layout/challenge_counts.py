"""Layout of a challenge: the counts by which a challenger is compared with the champion.

All words are integers: equal counts give equal decisions, whatever the runs that the records came in. The
chances of requests are powers of two for this reason. A label that was requested with the chance 2^-o has the
weight 2^o and belongs to *octave* o.
"""

from __future__ import annotations

from typing import Any, Final

from core.kernels.jit import tail
from core.kernels.records import Record, word, words_after

MOST: Final = 1 << 53
"""Largest count."""
OCTAVES: Final = 7
"""Chances are 1, 1/2, …, 1/64: a label stands for 64 disagreements at most."""

OPEN: Final = 0
"""Decision: none so far."""
PROMOTED: Final = 1
"""Decision: the challenger is better."""
DROPPED: Final = 2
"""Decision: the challenger is not better by enough to pay for the change."""
UNDECIDED: Final = 3
"""Decision: the labels are used up without one of the others."""


class ChallengeCounts(Record):
    """The counts of a challenge, then wins and losses of the challenger by octave.

    A *disagreement* is a record that both models answered, with different classes. It is *drawn* if its label
    is to be compared; a *win* is a compared label that the challenger answered right, a *loss* one that the
    champion answered right.
    """

    records: int = word("records that both models answered", low=0, high=MOST)
    disagreements: int = word("records that they answered differently", low=0, high="records")
    drawn: int = word("disagreements that were drawn", low=0, high="disagreements")
    charged: int = word("drawn disagreements whose label would not have come otherwise", low=0, high="drawn")
    labels: int = word("labels compared", low=0, high="drawn")
    weight: int = word("sum of the weights of these labels", low="labels", high=MOST)
    reference: int = word("octave of the first label compared", low=0, high="largest")
    largest: int = word("highest octave of a label compared", low=0, high=OCTAVES - 1)
    decision: int = word("OPEN, PROMOTED, DROPPED or UNDECIDED", low=OPEN, high=UNDECIDED)
    wins: Any = words_after(int, "wins [OCTAVES]; losses [OCTAVES]")

    def losses(self) -> Any:
        """Return the losses by octave, int64[OCTAVES]."""
        return tail(self.wins, OCTAVES)


CHALLENGE_WORDS: Final = ChallengeCounts.SIZE + 2 * OCTAVES
