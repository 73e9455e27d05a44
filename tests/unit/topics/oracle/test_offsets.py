"""Nothing is committed before everything up to it is dealt with."""

from hypothesis import given
from hypothesis import strategies as st

from topics.oracle.consumed_requests import OffsetTracker


def test_nothing_consumed_nothing_to_commit():
    assert OffsetTracker().committable() is None


def test_in_any_order():
    tracker = OffsetTracker()
    for offset in (10, 11, 15):  # gaps are transaction markers
        tracker.begin(offset)
    assert tracker.committable() == 10
    tracker.finish(11)
    assert tracker.committable() == 10
    tracker.finish(10)
    assert tracker.committable() == 15
    tracker.finish(15)
    assert tracker.committable() == 16
    tracker.committed(16)
    assert tracker.committable() is None
    tracker.begin(16)
    assert tracker.committable() is None
    tracker.finish(16)
    assert tracker.committable() == 17


def test_an_end_that_was_reached_is_committed_behind_what_is_dealt_with():
    tracker = OffsetTracker()
    tracker.begin(10)
    tracker.reach(12)  # a transaction's marker lies at 11
    assert tracker.committable() == 10
    tracker.finish(10)
    assert tracker.committable() == 12
    tracker.committed(12)
    tracker.reach(12)
    assert tracker.committable() is None


@given(st.data())
def test_against_the_plain_rule(data):
    tracker, position = OffsetTracker(), 0
    begun: list[int] = []
    done: set[int] = set()
    for _ in range(data.draw(st.integers(0, 40))):
        left = [offset for offset in begun if offset not in done]
        if left and data.draw(st.booleans()):
            offset = data.draw(st.sampled_from(left))
            tracker.finish(offset)
            done.add(offset)
        else:
            position += data.draw(st.integers(1, 3))
            tracker.begin(position)
            begun.append(position)
        offset = tracker.committable()
        assert offset is not None
        assert all(each in done for each in begun if each < offset)
        assert offset == next((each for each in begun if each not in done), begun[-1] + 1)
