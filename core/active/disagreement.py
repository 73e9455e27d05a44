"""Requests where a champion and its challenger disagree: the labels that show which of two models is better.

Where both answer the same class, the difference of their accuracy is 0 whatever the label is. So labels are
drawn from the disagreements alone (as Karimi, Gürel, Karlaš, Rausch, Zhang and Krause 2021 do), all of them
if the share of the budget pays for all. Otherwise each is drawn with a chance that depends on earlier records
alone, not on this record, so that drawn disagreements differ from the others by chance only.

The chance is the largest power of two, from 1 to 1/64, with which the disagreements of the next HORIZON
records cost at most what the share grants for these records, plus its savings. A drawn label costs nothing
if it was requested before, or came with its record. ``charged < rate·records + 1`` always holds.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from core.kernels.jit import kernel
from core.layout.challenge_counts import OCTAVES, ChallengeCounts
from core.numeric import rng

HORIZON: Final = 1000.0
"""Number of records over which savings are spent."""

EXPECTED_AT_FIRST: Final = 0.1
"""Share of the records at which two models are expected to disagree, before any was answered."""
WEIGHT_OF_EXPECTED: Final = 100.0
"""Number of records that this expectation counts for."""

NOT_DRAWN: Final = -1
"""Octave of a record that is not compared."""

# Sources of labels
NOBODY: Final = 0
"""Nobody has requested the label so far."""
REQUESTED: Final = 1
"""The strategy, or the evaluation, has requested the label."""
GIVEN: Final = 2
"""The label came with its record."""


def request_key(seed: int) -> np.uint64:
    """Return the key of the draws for a model of this seed."""
    return rng.stream_key(seed, rng.DISAGREEMENT)


@kernel
def affordable_octave(counts: ChallengeCounts, rate: float) -> int:
    """Return the octave of the chance with which the next disagreement is drawn."""
    share = (counts.disagreements + WEIGHT_OF_EXPECTED * EXPECTED_AT_FIRST) / (
        counts.records + WEIGHT_OF_EXPECTED
    )
    saved = max(rate * counts.records - counts.charged, 0.0)
    costs, octave = share * HORIZON, 0
    while octave < OCTAVES - 1 and costs > saved + rate * HORIZON:
        costs *= 0.5
        octave += 1
    return octave


@kernel
def draw(
    counts: ChallengeCounts, key: rng.Key, rate: float, number: int, disagrees: bool, source: int
) -> int:
    """Count a record that both models answered; return the octave of its draw, or NOT_DRAWN.

    rate: labels per record that the share of the budget grants; number: the record's, on which its draw
    depends.
    """
    counts.records += 1
    if not disagrees:
        return NOT_DRAWN
    octave = 0
    if source != GIVEN:
        octave = affordable_octave(counts, rate)
        is_open = counts.charged < rate * counts.records
        if not (is_open and rng.uniform(key, number << rng.DRAW_BITS) * (1 << octave) < 1.0):
            octave = NOT_DRAWN
    counts.disagreements += 1
    if octave != NOT_DRAWN:
        counts.drawn += 1
        counts.charged += 1 if source == NOBODY else 0
    return octave


@kernel(
    "void(ChallengeCounts, uint64, float64, int64[::1], int32[::1], int32[::1], int8[::1], int8[::1])",
    alone=True,
)
def draw_rows(
    counts: ChallengeCounts, key: rng.Key, rate: float, number, champion, challenger, source, octave
) -> None:
    """Draw among the rows of one champion and its challenger, in order.

    number: int64[n], the record numbers; champion, challenger: int32[n], the
    classes answered, -1: none; source: int8[n]; octave: int8[n], written.
    """
    for row in range(len(number)):
        octave[row] = NOT_DRAWN
        if champion[row] >= 0 and challenger[row] >= 0:
            disagrees = champion[row] != challenger[row]
            octave[row] = draw(counts, key, rate, int(number[row]), disagrees, int(source[row]))
