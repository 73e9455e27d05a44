"""What the demo counts, judged against the data set."""

import numpy as np

from streamapp.demo.tally import ModelTally, Truth

TRUTH = Truth(np.array([0, 1, 1, -1], np.int32), ("no", "yes"))


def test_repeats_count_once_and_the_first_answer_counts() -> None:
    tally = ModelTally(TRUTH)
    tally.answer(0, "no")
    tally.answer(0, "yes")
    tally.ask(0)
    tally.ask(0)
    assert (tally.answered, tally.asked, tally.accuracy) == (1, 1, 1.0)


def test_no_answer_and_unknown_class_are_wrong() -> None:
    tally = ModelTally(TRUTH)
    tally.answer(0, None)
    tally.answer(1, "perhaps")
    tally.answer(2, "yes")
    assert tally.judged == (3, 1)
    assert tally.recent_accuracy == tally.accuracy == 1 / 3


def test_rows_without_a_class_are_answered_but_not_judged() -> None:
    tally = ModelTally(TRUTH)
    for row in range(TRUTH.rows):
        assert not tally.complete
        tally.answer(row, None)
    assert tally.complete
    assert tally.judged[0] == 3


def test_nothing_yet() -> None:
    tally = ModelTally(TRUTH)
    assert (tally.accuracy, tally.recent_accuracy, tally.complete) == (0.0, 0.0, False)
