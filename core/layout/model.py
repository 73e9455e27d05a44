"""Layout of a model's words: its header, its evaluation and the numbers that it has seen.

All state of a model is one buffer of 8-byte words, seen as ``ints`` (int64) and ``floats`` (float64):

    model header | detector | query | budget | evaluation | values seen | numbers seen | measures
    | learning curve | inputs | calibration | conformal | shared by blocks | block | block | …

A *block* is the state of one instance of the learner. The first block answers, any other block only learns.
Each begins with the number of its words; the learner defines the rest (core/learners/protocol.py).

The data that models of one spec and schema share (counts, kinds, parameters, positions of attributes) is in a
*plan*, a separate buffer that is not state: kernels get it together with the model.

Counts and codes are int64 and weights float64 because both then share one alignment, one copy and one
address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from core.kernels.jit import kernel
from core.kernels.records import Record, Words, word, words_after
from core.layout.inputs import InputState

if TYPE_CHECKING:
    from core.layout.plan import PlanRecord

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

WORD: Final = 8
"""Bytes of a word."""


class ModelHeader(Record):
    """The first words of a model."""

    words: int = word("words of the buffer in use")
    first: int = word("first word of the block that answers")
    second: int = word("first word of the next block, which only learns; 0: there is none")
    records: int = word("records answered: t of the papers")
    labels: int = word("labels learned: the model's version")
    requests: int = word("labels requested")
    replies: int = word("labels learned that had been requested (and had not expired)")
    classes: int = word("classes declared, or the largest class code learned plus one")
    level: int = word("the drift detector's level")
    rebuilds: int = word("blocks replaced after a drift")
    background_stale: int = word("1: the background block starts again at the next warning")
    declined: int = word("requests that will not be answered")
    expired: int = word("requests not answered in time")
    reserved: int = word("requests made for the evaluation, past the budget")
    refused: int = word("records that the strategy did not score: the budget was closed")
    interval_end: int = word("labels at which an interval of the learning curve ends; 0: it begins")

    def section(self, position: int) -> Words:
        """Return the words of the model from a position on."""
        return Words(self.ints, self.floats, position)

    def block(self, number: int) -> Words:
        """Return a block by its number; block 0 answers."""
        position = self.first
        for _ in range(number):
            position += self.ints[position]
        return Words(self.ints, self.floats, position)

    def evaluation(self, plan: PlanRecord) -> EvaluationCounters:
        return EvaluationCounters(self.ints, self.floats, plan.evaluation)

    def input_state(self, plan: PlanRecord) -> InputState:
        """Return the state of the input detector; ``plan.input_words`` is 0 if the model has none."""
        return InputState(self.ints, self.floats, plan.inputs_state)

    def values_seen(self, plan: PlanRecord) -> Any:
        """Return how many values of each nominal attribute the model has seen, int64[nominal attribute]."""
        return Words(self.ints, self.floats, plan.values_seen).numbers


class Block(Record):
    """The first word of any block."""

    words: int = word("words of the block")


@kernel
def model_of(record: Record) -> ModelHeader:
    """Return the header of the model whose words hold a record."""
    return ModelHeader(record.ints, record.floats, 0)


@kernel
def meets_value(plan: PlanRecord, model: ModelHeader, x) -> bool:
    """Return whether a record has a value of an open attribute that the model has not learned before."""
    seen = model.values_seen(plan)
    for j in range(plan.nominal):
        attribute = plan.nominal_column(j)
        if seen[j] <= x[attribute.column] < attribute.room:
            return True
    return False


@kernel
def notice(plan: PlanRecord, model: ModelHeader, label: int, x) -> None:
    """Count a new class and new values of open attributes as learned by the model."""
    if model.classes <= label:
        model.classes = label + 1
    if plan.open_values != 0:
        seen = model.values_seen(plan)
        for j in range(plan.nominal):
            attribute = plan.nominal_column(j)
            value = x[attribute.column]
            if seen[j] <= value < attribute.room:
                seen[j] = int(value) + 1


class EvaluationCounters(Record):
    """The evaluation section: counters, then six rows [class], the window as packed codes, and bits.

    The bits, one for each record of the window, hold whether its label was the majority class of the window
    at that time.
    """

    count: int = word("predictions evaluated")
    next: int = word("window position that is written next")
    sampled: int = word("evaluated predictions of records that were sampled at random")
    sampled_hit: int = word("hits among the sampled")
    # If the strategy has known probabilities (core/active/label_query.py):
    importance: float = word("sum of the importance of the sampled records that were evaluated")
    importance_hit: float = word("sum of the importance of the hits among them")
    represented: float = word("records that the strategy scored, with the records they represent")
    squares: float = word("sum of their squares divided by their probabilities")
    unrepresented: float = word("records that met a closed budget, not yet represented")
    chosen: int = word("requests with a known probability")
    # Two baselines on the same predictions: the last label, and the class with most labels so far
    last: int = word("label of the last prediction evaluated (0 at first)")
    last_hit: int = word("labels that were equal to the label before")
    majority: int = word("class with most labels, the lowest code of equal counts")
    majority_hit: int = word("labels of the class with most labels, with this label counted")
    window_last_hit: int = word("labels in the window that were equal to the label before")
    window_majority: int = word("class with most labels in the window")
    window_majority_hit: int = word("labels in the window of the class with most labels at their time")
    before: int = word("label before the oldest of the window; 0 also if there is none")
    uncompared: int = word("predictions evaluated before baselines were counted (state version 5)")
    uncompared_hit: int = word("hits among these")
    counts: Any = words_after(int, "six rows [class]: one of ACTUAL … WINDOW_HIT")


ACTUAL: Final = 0
"""Row of the evaluation section: labels per class."""
PREDICTED: Final = 1
"""Row: predictions per class."""
HIT: Final = 2
"""Row: hits per class."""
WINDOW: Final = 3
"""First row of the same three over the window."""
EVALUATION_ROWS: Final = 6


class NumbersSeen(Record):
    """The range of a numeric attribute in the records so far, if the model explains."""

    low: float = word("lowest number")
    high: float = word("highest number")
    count: float = word("count of numbers; if 0, low and high are not set")


def code_bits(classes: int) -> int:
    """Return the bits of a class code in the window: a power of two, so that no code crosses a word."""
    bits = 1
    while classes > 1 << bits:
        bits *= 2
    return bits


def window_words(window: int, bits: int) -> int:
    """Return the number of words of a window of (label, prediction) codes."""
    per_word = 64 // (2 * bits)
    return -(-window // per_word)


def evaluation_words(classes: int, window: int) -> int:
    """Return the number of words of the evaluation section."""
    return window_bits_at(classes, window) + -(-window // 64)


def window_bits_at(classes: int, window: int) -> int:
    """Return the first word of the window's bits in the evaluation section."""
    return EvaluationCounters.SIZE + EVALUATION_ROWS * classes + window_words(window, code_bits(classes))
