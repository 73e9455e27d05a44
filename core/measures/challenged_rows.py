"""Rows of a challenged key: which requests are exchanged, which disagreements are requested and compared.

    both answered ──> the strategy's request is kept, or given up (purse + 1)
                 └──> disagreement drawn? ── nobody has requested its label ──> requested (purse - 1)
                                        └── the label is here ──> compared

Requests at disagreements are paid with requests of the strategy. While the purse holds fewer than MOST
requests, each request of the strategy is given up with the probability ``share``; the others represent
1 / (1 - share) times as many records. A given-up request stays open in the label account of the model until a
request at a disagreement takes its place. So a challenge spends no label beyond the budget, whatever
strategy and budget are, and takes requests only as long as it needs them.

Whether a disagreement may be drawn depends on the purse before its record: not on the record.
"""

from __future__ import annotations

from typing import Final

from core.active.disagreement import GIVEN, NOBODY, NOT_DRAWN, REQUESTED, draw
from core.kernels.jit import kernel
from core.kernels.records import Record, word
from core.layout.challenge_counts import OPEN, ChallengeCounts
from core.measures.challenge_bounds import compare
from core.numeric import rng

MOST: Final = 32
"""Most requests in the purse."""

BY_STRATEGY: Final = 3
"""Source of a label that the strategy has requested, and may give up."""


class Purse(Record):
    """Requests that the strategy gave up."""

    credits: int = word(
        "requests given up in whose place no other has been made yet", low=0, high="exchanged"
    )
    exchanged: int = word("requests given up so far", low=0)


class ComparedRow(Record):
    """A row that a champion and its challenger answered."""

    number: int = word("number of the record; its draws depend on it")
    champion: int = word("class that the champion answered, -1: none")
    challenger: int = word("class that the challenger answered, -1: none, or it is not compared yet")
    label: int = word("class of a label that came with the record, -1: none")
    source: int = word("NOBODY, REQUESTED, GIVEN or BY_STRATEGY; written: who requests the label now")
    octave: int = word("written: octave of its draw, NOT_DRAWN: it is not compared")
    importance: float = word("importance of the strategy's request; written")


ROW_WORDS: Final = ComparedRow.SIZE


@kernel(
    "int64(ChallengeCounts, Purse, float64[::1], float64[::1], uint64, uint64, ComparedRow, int64)",
    alone=True,
)
def compare_answers(
    counts: ChallengeCounts,
    purse: Purse,
    terms,
    rules,
    key: rng.Key,
    exchange_key: rng.Key,
    first: ComparedRow,
    rows: int,
) -> int:
    """Decide about the rows of one key in order; return the row of the decision plus 1, or 0.

    terms: float64[2], ``share`` and ``rate``; rules: float64[4]; key and exchange_key: of the draws of
    disagreements and of exchanges; first: the first of n rows. After a decision rows stay as they are.
    """
    decided = 0
    for number in range(rows):
        row = ComparedRow(first.ints, first.floats, first.start + number * ROW_WORDS)
        row.octave = NOT_DRAWN
        if counts.decision != OPEN:
            continue
        if row.champion < 0 or row.challenger < 0:
            continue
        rate = terms[1] if purse.credits > 0 else 0.0
        exchange(purse, terms[0], exchange_key, row)
        source = REQUESTED if row.source == BY_STRATEGY else row.source
        octave = draw(counts, key, rate, row.number, row.champion != row.challenger, source)
        row.octave = octave
        if octave != NOT_DRAWN and source == NOBODY:
            row.source = REQUESTED
            purse.credits -= 1
        if octave != NOT_DRAWN and source == GIVEN:
            decision = compare(counts, rules, row.label, row.champion, row.challenger, octave)
            decided = number + 1 if decision != OPEN else 0
    return decided


@kernel
def exchange(purse: Purse, share: float, key: rng.Key, row: ComparedRow) -> None:
    """Let the strategy give up its request of a row, or keep it."""
    if row.source != BY_STRATEGY or purse.credits >= MOST:
        return
    if rng.uniform(key, row.number << rng.DRAW_BITS) < share:
        purse.credits += 1
        purse.exchanged += 1
        row.source, row.importance = NOBODY, 0.0
    else:
        row.importance /= 1.0 - share
