"""Owed labels come out in the order in which they are due, whatever the order of adding."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topics.replay.owed import LabelRows, OwedLabels


def labels(dues, first=0):
    n = len(dues)
    rows = np.arange(first, first + n, dtype=np.int64)
    return LabelRows(np.array(dues, dtype=float), rows, (rows % 3).astype(np.int32), 10 * rows)


def test_nothing_owed():
    owed = OwedLabels()
    assert len(owed) == 0 and owed.next_due == float("inf")
    assert len(owed.take(float("inf"))) == 0
    owed.add(labels([]))
    assert len(owed) == 0


@given(
    pieces=st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=8),
    steps=st.lists(st.integers(0, 35), max_size=8),
)
def test_against_a_sorted_list(pieces, steps):
    owed, expected, first = OwedLabels(), [], 0
    for piece in pieces:
        owed.add(labels(piece, first))
        expected += [(due, first + n) for n, due in enumerate(piece)]
        first += len(piece)
    for until in [*sorted(steps), 100]:
        taken = owed.take(until)
        due = sorted(pair for pair in expected if pair[0] <= until)
        assert list(zip(taken.due.tolist(), taken.row.tolist(), strict=True)) == due
        assert taken.timestamp.tolist() == [10 * row for _, row in due]
        assert taken.code.tolist() == [row % 3 for _, row in due]
        expected = [pair for pair in expected if pair[0] > until]
        assert len(owed) == len(expected)
        assert owed.next_due == min((due for due, _ in expected), default=float("inf"))
