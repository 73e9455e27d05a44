"""What a commit says of a partition: entries that the journal takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.worker.journal.entry import Entry, JournalError, Step, encode
from streamapp.worker.journal.ledger import Ledger, LedgerError, check_controls, room_for_steps, step_of
from streamapp.worker.task.effects.effects import DeadLetter, Effects, Origin
from streamapp.worker.task.sources import SourceName
from tests.positions import at
from topics.columns.records import RawRecords
from topics.errors import Reason


def controls(*sizes: int, first: int = 0) -> RawRecords:
    n = len(sizes)
    offsets = list(range(first, first + n))
    values: list[bytes | None] = [bytes(size) for size in sizes]
    return RawRecords("t.controls", 0, offsets, [0] * n, [b"k"] * n, values, [()] * n)


def put_aside(raw: RawRecords, record: int) -> Effects:
    return Effects(dead_letters=[DeadLetter(Origin.of(raw, record), Reason.PROCESSING_ERROR, "it broke")])


def records(entry: Entry) -> list[int]:
    return [offset for step in entry.steps if step.records for offset in step.records.offsets]


def test_records_of_one_source_in_a_row_are_one_step() -> None:
    ledger = Ledger(at(), 1, "{}")
    for step in (
        Step("instances", 3),
        Step("instances", 5, ((4, 5),)),
        Step("labels", 1),
        Step("instances", 9),
    ):
        ledger.note(step)
    (entry,) = ledger.cut()
    assert entry.steps == (Step("instances", 5, ((4, 5),)), Step("labels", 1), Step("instances", 9))
    assert (entry.before, entry.after, entry.config) == (at(), at(instances=9, labels=1), "{}")
    assert ledger.is_empty


def test_a_position_never_falls() -> None:
    ledger = Ledger(at(instances=300), 1, "{}")
    ledger.note(Step("instances", 1000, ((300, 1000),)))
    with pytest.raises(LedgerError, match="instances: processed up to 1000, and then up to 400"):
        ledger.note(Step("instances", 400, count=100))
    assert ledger.positions == at(instances=1000)


def test_records_are_counted_where_all_of_them_are_known() -> None:
    ledger = Ledger(at(), 1, "{}")
    for step in (
        Step("instances", 3, count=3),
        Step("instances", 9, count=2),
        Step("labels", 5, count=4),
        Step("labels", 6),
        Step("instances", 11, count=0),
    ):
        ledger.note(step)
    (entry,) = ledger.cut()
    assert entry.steps == (Step("instances", 9, count=5), Step("labels", 6), Step("instances", 11, count=0))
    raw = controls(10, 10, first=3)
    assert step_of("labels", raw, 9, put_aside(raw, 0)) == Step("labels", 9, ((3, 4),), count=2)
    assert step_of("controls", raw, 9, Effects()).count is None


DrawnStep = tuple[SourceName, int, int, str]
STEPS = st.tuples(
    st.sampled_from(["instances", "labels"]),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from(["plain", "plain", "skipped", "lost", "uncounted"]),
)


@given(st.lists(st.one_of(STEPS, st.none()), max_size=12))
def test_steps_of_answers_alone_are_noted_as_any_step(
    steps: list[tuple[SourceName, int, int, str] | None],
) -> None:
    """`note_plain` is a shorter way to the same entries; None: a commit cuts the ledger."""
    short, whole = Ledger(at(), 1, "{}"), Ledger(at(), 1, "{}")
    entries: tuple[list[Entry], list[Entry]] = [], []
    for drawn in (*steps, None):
        if drawn is None:
            entries[0].extend(short.cut())
            entries[1].extend(whole.cut())
            continue
        source, by, count, kind = drawn
        to = whole.positions[source] + by
        if kind == "plain":
            short.note_plain(source, to, count)
            whole.note(Step(source, to, count=count))
            continue
        skipped = {"skipped": ((to - 1, to),), "lost": ((to - by, to),), "uncounted": ()}[kind]
        for ledger in (short, whole):
            ledger.note(Step(source, to, skipped, count=None if kind == "uncounted" else count))
    assert short.positions == whole.positions
    assert entries[0] == entries[1]


def test_controls_too_large_for_one_entry_stand_in_several_that_follow_upon_each_other() -> None:
    most = 4000
    ledger = Ledger(at(controls=7), 1, "{}", most)
    ledger.note(Step("instances", 2))
    ledger.note(step_of("controls", controls(1000, 2000, 900, 10, first=7), 12, Effects()))
    ledger.note(Step("instances", 4))
    entries = ledger.cut()
    assert [records(entry) for entry in entries] == [[7, 8], [9, 10]]
    assert [offset for entry in entries for offset in records(entry)] == [7, 8, 9, 10]
    assert all(len(encode(entry)) <= most for entry in entries)
    assert [entry.before for entry in entries[1:]] == [entry.after for entry in entries[:-1]]
    assert (entries[0].before, entries[-1].after) == (at(controls=7), at(controls=12, instances=4))
    assert [entry.config for entry in entries] == ["{}"] + [None] * (len(entries) - 1)


def test_the_largest_control_that_is_taken_fits_and_one_byte_more_is_refused() -> None:
    most, config = 100_000, "{" + "c" * 300 + "}"
    room = room_for_steps(config, most)
    size = room
    while True:
        raw = controls(size)
        try:
            check_controls(raw, Effects(), room)
        except JournalError:
            size -= 1
            continue
        break
    with pytest.raises(JournalError, match=f"must have at most {room}.*raise max.message.bytes"):
        check_controls(controls(size + 1), Effects(), room)
    ledger = Ledger(at(), 1, config, most)
    ledger.note(step_of("controls", controls(size), 1, Effects()))
    (entry,) = ledger.cut()
    assert most - 1000 < len(encode(entry)) <= most


def test_a_control_that_was_put_aside_is_neither_repeated_nor_refused() -> None:
    raw = controls(10, 5000, 10)
    effects = put_aside(raw, 1)
    check_controls(raw, effects, 1000)
    step = step_of("controls", raw, 3, effects)
    assert step.records is not None
    assert (step.records.offsets, step.skipped, step.to) == ([0, 2], ((1, 2),), 3)
    only = step_of("controls", controls(5000), 1, put_aside(controls(5000), 0))
    assert (only.records, only.skipped) == (None, ((0, 1),))


def test_a_step_of_one_control_lists_no_dead_letters_of_the_others() -> None:
    """Else a run of n refused controls would take n² ranges in the journal."""
    raw = controls(*[10] * 8)
    letters = [
        DeadLetter(Origin.of(raw, record), reason, "", record=record)
        for record, reason in enumerate([Reason.BAD_CONTROL, Reason.SKIPPED, Reason.TOO_MANY_MODELS] * 2)
    ]
    ledger = Ledger(at(), 1, "{}")
    ledger.note(step_of("controls", raw, 8, Effects(dead_letters=letters)))
    (entry,) = ledger.cut()
    assert [(step.to, step.dead, step.skipped, step.refused) for step in entry.steps] == [
        (2, ((0, 1),), ((1, 2),), ()),
        (3, (), (), ((2, 3),)),
        (5, ((3, 4),), ((4, 5),), ()),
        (6, (), (), ((5, 6),)),
        (7, (), (), ()),
        (8, (), (), ()),
    ]
