"""Answers wait until they are due, and leave with their partition."""

from topics.oracle.drawn_answers import Outcome
from topics.oracle.waiting_answers import WaitingAnswer, WaitingAnswers

DUES = [5.0, 1.0, 3.0, 1.0, 9.0]


def holding():
    waiting = WaitingAnswers()
    for offset, due in enumerate(DUES):
        waiting.add(WaitingAnswer(due, offset % 2, offset, b"k", str(offset), Outcome.LABEL, b"", 0))
    return waiting


def test_taken_in_the_order_they_are_due():
    waiting = holding()
    assert waiting.next_due_ms == 1.0
    assert [each.due_ms for each in waiting.take(4, most=10)] == [1.0, 1.0, 3.0]
    assert [each.due_ms for each in waiting.take(float("inf"), most=1)] == [5.0]
    assert len(waiting) == 1 and waiting.next_due_ms == 9.0


def test_nothing_is_due():
    waiting = WaitingAnswers()
    assert waiting.next_due_ms == float("inf") and waiting.take(float("inf"), 5) == []


def test_forgetting_a_partition():
    waiting = holding()
    waiting.forget({1})
    assert [each.offset for each in waiting.take(float("inf"), 10)] == [2, 0, 4]
