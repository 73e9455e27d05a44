"""What the demo counts, judged against the data set."""

import numpy as np

from streamapp.demo.tally import ModelTally, Truth

TRUTH = Truth(np.array([0, 1, 1, -1], np.int32), ("no", "yes"))


def test_repeats_count_once_and_the_first_answer_counts() -> None:
    tally = ModelTally(TRUTH)
    tally.answer(0, "no", 1)
    tally.answer(0, "yes", 1)
    tally.ask(0)
    tally.ask(0)
    assert (tally.answered, tally.asked, tally.accuracy) == (1, 1, 1.0)


def test_no_answer_and_unknown_class_are_wrong() -> None:
    tally = ModelTally(TRUTH)
    tally.answer(0, None, 1)
    tally.answer(1, "perhaps", 1)
    tally.answer(2, "yes", 1)
    assert tally.evaluated == (3, 1)
    assert tally.accuracy == 1 / 3


def test_rows_without_a_class_are_answered_but_not_judged() -> None:
    tally = ModelTally(TRUTH)
    for row in range(TRUTH.rows):
        assert not tally.complete
        tally.answer(row, None, 1)
    assert tally.complete
    assert tally.evaluated[0] == 3


def test_answers_before_the_first_label_are_counted_apart() -> None:
    tally = ModelTally(TRUTH)
    tally.answer(0, None, 0)
    tally.answer(1, "no", 0)
    tally.answer(2, "yes", 1)
    assert (tally.answered, tally.untrained, tally.evaluated) == (3, 2, (1, 1))
    assert (tally.accuracy, tally.first_accuracy) == (1.0, 1.0)


def test_nothing_yet() -> None:
    tally = ModelTally(TRUTH)
    assert (tally.accuracy, tally.first_accuracy, tally.last_accuracy) == (0.0, 0.0, 0.0)
    assert not tally.complete


def test_fifths_of_the_stream() -> None:
    truth = Truth(np.array([0] * 6 + [1] * 4, np.int32), ("no", "yes"))
    tally = ModelTally(truth)
    for row in range(truth.rows):
        tally.answer(row, "yes", 1)
    assert (tally.first_accuracy, tally.accuracy, tally.last_accuracy) == (0.0, 0.4, 1.0)


def test_the_base_rate_is_that_of_the_whole_streams_commonest_class() -> None:
    truth = Truth(np.array([0, 1, -1, 0, 0, 1, 0, 0, 1, 1], np.int32), ("no", "yes"))
    assert truth.base_rate() == 5 / 9
    assert truth.base_rate(slice(truth.fifth)) == 1 / 2
    assert truth.base_rate(slice(-truth.fifth, None)) == 0.0
    assert Truth(np.array([-1, -1], np.int32), ("no",)).base_rate() == 0.0
