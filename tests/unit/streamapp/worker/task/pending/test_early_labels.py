"""Labels that wait for their instance."""

from __future__ import annotations

from streamapp.worker.task.effects.effects import Origin
from streamapp.worker.task.pending.early_labels import HELD_BYTES, EarlyLabels, HeldLabel

HOLD = 100
ORIGIN = Origin("t.labels", 0, 0, 0, b"k", b"v", ())


def held(born: int, label: str = "x") -> HeldLabel:
    return HeldLabel(label, 1.0, born, ORIGIN, None, 10)


def name(i: int) -> tuple[str, str]:
    return ("m", f"i{i}")


def test_a_label_is_held_for_its_time_and_then_given_up() -> None:
    early = EarlyLabels(HOLD, 10_000)
    early.hold(name(1), held(0))
    assert early.find(name(1), HOLD) is not None
    assert early.find(name(1), HOLD + 1) is None
    early.expire(HOLD)
    assert (early.waiting, early.given_up) == (1, 0)
    early.expire(HOLD + 1)
    assert (early.waiting, early.given_up, early.bytes) == (0, 1, 0)


def test_a_released_label_is_remembered_and_not_counted_as_given_up() -> None:
    early = EarlyLabels(HOLD, 10_000)
    early.hold(name(1), held(0))
    early.release(name(1))
    found = early.find(name(1), 5)
    assert found is not None
    assert found.released
    assert (early.waiting, len(early)) == (0, 1)
    early.expire(HOLD + 1)
    assert (early.given_up, len(early)) == (0, 0)


def test_the_oldest_gives_way() -> None:
    early = EarlyLabels(HOLD, 3 * (HELD_BYTES + 10))
    for i in range(5):
        early.hold(name(i), held(i))
    assert [early.find(name(i), 5) is not None for i in range(5)] == [False, False, True, True, True]
    assert (early.given_up, early.bytes) == (2, 3 * (HELD_BYTES + 10))


def test_rollback_brings_back_order_counts_and_releases() -> None:
    early = EarlyLabels(HOLD, 3 * (HELD_BYTES + 10))
    for i in range(3):
        early.hold(name(i), held(i))
    early.checkpoint()
    early.release(name(1))
    early.hold(name(7), held(50))
    early.expire(102)
    early.hold(name(0), held(103))
    early.rollback()
    assert list(early._held) == [name(0), name(1), name(2)]
    assert (early.waiting, early.given_up, early.bytes) == (3, 0, 3 * (HELD_BYTES + 10))
    early.expire(HOLD + 1)
    assert early.given_up == 1


def test_names_are_looked_up_together() -> None:
    early = EarlyLabels(HOLD, 10_000)
    assert early.knows_none_of([name(1)])
    early.hold(name(1), held(0))
    assert early.knows_none_of([name(2), ("k", "i1")])
    assert not early.knows_none_of([name(2), name(1)])


def test_a_clock_that_goes_back_holds_labels_from_there() -> None:
    early = EarlyLabels(HOLD, 10_000)
    early.hold(name(1), held(10))
    early.hold(name(2), held(90))
    early.checkpoint()
    early.turn(20)
    assert [early.find(name(i), 20 + HOLD) is not None for i in (1, 2)] == [False, True]
    early.turn(15)
    assert early.find(name(2), 16 + HOLD) is None
    early.rollback()
    assert early.find(name(2), 90 + HOLD) is not None
