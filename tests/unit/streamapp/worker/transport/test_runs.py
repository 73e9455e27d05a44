"""Runs in time order: which topic is next, how far a run goes, which empty topic is waited for."""

import tracemalloc
from collections.abc import Sequence

import pytest

from streamapp.worker.transport.novelty import KINDS, NOVEL_RECORDS
from streamapp.worker.transport.runs import MAX_AHEAD_BYTES, MAX_RUN_BYTES, FetchedColumns, Run, TimeOrder
from topics.columns.spans import RecordSpans

TOPICS = ("controls", "instances", "labels")


def columns(
    timestamps: Sequence[int], first: int = 0, log_end: int | None = None, size: int | None = None
) -> FetchedColumns:
    """Records with consecutive offsets from `first` on; by default the broker has no more.

    `size`: bytes of all values, else each is the offset.
    """
    n = len(timestamps)
    offsets = list(range(first, first + n))
    values = [str(offset).encode() if size is None else bytes(size // n) for offset in offsets]
    records = RecordSpans.of(offsets, timestamps, [b"key"] * n, values, [()] * n)
    return FetchedColumns(records, first + n, first + n if log_end is None else log_end)


def order(skew_ms: int = 0, max_idle_ms: int = 0, max_records: int = 100) -> TimeOrder:
    """A partition whose topics the broker has answered for: nothing is there."""
    made = TimeOrder(
        3, [(t, 0) for t in TOPICS], skew_ms=skew_ms, max_idle_ms=max_idle_ms, max_records=max_records
    )
    for topic in TOPICS:
        made.add(topic, columns([]))
    return made


def drained(of: TimeOrder, now: float = 0.0) -> list[tuple[str, Sequence[int]]]:
    runs = []
    while run := of.next_run(now):
        runs.append((run.topic, run.raw.timestamps))
    return runs


def test_the_topic_with_the_oldest_head_goes_first_and_up_to_the_other_heads() -> None:
    merged = order()
    merged.add("instances", columns([10, 20, 30, 40]))
    merged.add("labels", columns([15, 30, 50]))
    assert drained(merged) == [
        ("instances", [10]),
        ("labels", [15]),
        ("instances", [20, 30]),
        ("labels", [30]),
        ("instances", [40]),
        ("labels", [50]),
    ]


def test_instances_may_pass_the_head_of_labels_by_the_skew_and_labels_never_that_of_instances() -> None:
    merged = order(skew_ms=20)
    merged.add("instances", columns([10, 20, 30, 40, 50]))
    merged.add("labels", columns([15, 25, 35, 45, 55]))
    assert drained(merged) == [
        ("instances", [10, 20, 30]),  # up to 15 + 20
        ("labels", [15, 25, 35]),  # up to 40, not 60
        ("instances", [40, 50]),
        ("labels", [45, 55]),
    ]


def test_a_control_goes_before_an_instance_of_the_same_millisecond_and_that_before_its_label() -> None:
    merged = order()
    for topic in reversed(TOPICS):
        merged.add(topic, columns([7]))
    assert [topic for topic, _ in drained(merged)] == list(TOPICS)


def test_records_keep_the_order_of_their_topic_even_where_timestamps_go_back() -> None:
    merged = order()
    merged.add("instances", columns([30, 10, 20]))
    merged.add("labels", columns([15]))
    assert drained(merged) == [("labels", [15]), ("instances", [30, 10, 20])]


def test_a_run_is_cut_at_max_poll_records() -> None:
    merged = order(max_records=2)
    merged.add("instances", columns([1, 2, 3, 4, 5]))
    assert drained(merged) == [("instances", [1, 2]), ("instances", [3, 4]), ("instances", [5])]


def test_a_run_is_cut_by_bytes_but_a_large_record_stays_whole() -> None:
    merged = order()
    merged.add("instances", columns([1, 2, 3, 4], size=2 * MAX_RUN_BYTES))
    assert drained(merged) == [("instances", [1, 2]), ("instances", [3, 4])]
    merged.add("instances", columns([5, 6], first=4, size=8 * MAX_RUN_BYTES))
    assert drained(merged) == [("instances", [5]), ("instances", [6])]


def test_a_run_is_cut_by_the_bytes_of_headers_too() -> None:
    merged = order()
    headers = [[("trace", bytes(MAX_RUN_BYTES // 2))]] * 4
    records = RecordSpans.of(range(4), [1] * 4, [b"key"] * 4, [b"v"] * 4, headers)
    merged.add("instances", FetchedColumns(records, 4, 4))
    assert [len(offsets) for _, offsets in drained(merged)] == [1, 1, 1, 1]


def test_a_run_carries_its_columns_and_the_position_behind_it() -> None:
    merged = order(max_records=2)
    merged.add("instances", columns([5, 6, 7], first=40))
    first = merged.next_run(0.0)
    assert first is not None
    assert (first.raw.topic, first.raw.partition, first.raw.offsets) == ("instances", 3, [40, 41])
    assert first.raw.values == [b"40", b"41"]
    assert first.position == 42


def test_the_last_run_carries_the_position_behind_markers_and_holes() -> None:
    merged = order()
    holes = columns([5, 6])
    merged.add("instances", FetchedColumns(holes.records, position=9, log_end=9))
    run = merged.next_run(0.0)
    assert run is not None
    assert (run.raw.offsets, run.position) == ([0, 1], 9)


def test_a_fetch_without_records_moves_the_position() -> None:
    merged = order()
    merged.add("labels", FetchedColumns(RecordSpans.none(), position=12, log_end=12))
    assert merged.topics["labels"].next == 12
    assert merged.topics["labels"].lag == 0


def test_an_empty_topic_with_lag_at_the_broker_holds_the_others_back() -> None:
    merged = order()
    merged.add("instances", columns([10, 20]))
    merged.topics["labels"].log_end = 5
    assert merged.next_run(0.0) is None
    assert [ahead.topic for ahead in merged.awaited(0.0)] == ["labels"]
    merged.add("labels", columns([12, 13, 14, 15, 16]))
    assert drained(merged)[0] == ("instances", [10])


def test_a_topic_the_broker_has_not_answered_for_holds_the_others_back() -> None:
    merged = TimeOrder(0, [(t, 0) for t in TOPICS], skew_ms=0, max_idle_ms=0, max_records=10)
    merged.add("instances", columns([10]))
    merged.add("controls", columns([]))
    assert merged.next_run(0.0) is None
    merged.add("labels", columns([]))
    assert drained(merged) == [("instances", [10])]


def test_max_task_idle_waits_for_what_a_producer_may_still_send() -> None:
    merged = order(max_idle_ms=500)
    merged.add("instances", columns([10]))
    assert merged.next_run(100.0) is None
    assert merged.next_run(100.4) is None
    assert drained(merged, 100.5) == [("instances", [10])]
    merged.add("instances", columns([11], first=1))
    assert drained(merged, 100.6) == [("instances", [11])], (
        "the deadline is not set anew while a topic stays empty"
    )
    merged.add("labels", columns([12]))
    assert merged.next_run(100.7) is None, "instances are empty since 100.6"
    assert drained(merged, 101.1) == [("labels", [12])]


def test_max_task_idle_of_minus_one_waits_for_nothing() -> None:
    merged = order(max_idle_ms=-1)
    merged.add("instances", columns([10]))
    merged.topics["labels"].log_end = 5
    assert drained(merged) == [("instances", [10])]


def test_a_topic_that_is_ahead_is_not_fetched() -> None:
    merged = order(max_records=2)
    merged.topics["labels"].log_end = 1
    merged.add("instances", columns([1, 2, 3, 4]))
    assert [ahead.topic for ahead in merged.wanted()] == ["controls", "labels"]


def test_a_topic_of_large_records_is_not_fetched_far_ahead() -> None:
    merged = order()
    merged.topics["labels"].log_end = 1
    merged.add("instances", columns([1, 2, 3], size=3 * MAX_AHEAD_BYTES))
    assert [ahead.topic for ahead in merged.wanted()] == ["controls", "labels"]


def test_nothing_is_handed_out_when_nothing_is_there() -> None:
    assert order().next_run(0.0) is None


@pytest.mark.parametrize("pieces", [1, 2, 3, 7])
def test_what_is_handed_out_does_not_depend_on_how_it_was_fetched(pieces: int) -> None:
    merged = order(max_records=3)
    at, seen = 0, list[int]()
    timestamps = list(range(20))
    while at < len(timestamps):
        merged.add("instances", columns(timestamps[at : at + pieces], first=at, log_end=20))
        at += pieces
        run: Run | None = merged.next_run(0.0)
        assert run is not None
        seen += run.raw.offsets
    while run := merged.next_run(0.0):
        seen += run.raw.offsets
    assert seen == timestamps


def named(names: Sequence[str]) -> FetchedColumns:
    """Records of one feature each, of these names."""
    n = len(names)
    values = [b'{"features":{"%s":1.5},"id":"i%d"}' % (name.encode(), at) for at, name in enumerate(names)]
    return FetchedColumns(RecordSpans.of(range(n), [10] * n, [b"key"] * n, values, [()] * n), n, n)


def test_a_run_that_was_too_much_comes_again_in_runs_that_grow() -> None:
    merged = order()
    merged.add("instances", columns([10] * 100))
    run = merged.next_run(0.0)
    assert run is not None
    first, rest = run.cut(3)
    assert ([*first.raw.offsets], first.position) == ([0, 1, 2], 3)
    merged.give_back(rest, len(first.raw))
    assert merged.topics["instances"].next == 3
    merged.add("instances", columns([10] * 50, first=100))
    lengths, offsets = [], [*first.raw.offsets]
    while run := merged.next_run(0.0):
        lengths.append(len(run.raw))
        offsets += run.raw.offsets
    assert lengths == [6, 12, 24, 48, 57]
    assert offsets == [*range(150)]


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_records_that_each_name_something_new_come_in_small_runs(share: float) -> None:
    merged = order(max_records=5000)
    merged.add("instances", named([f"f{at}" if at % 10 < 10 * share else "x" for at in range(1000)]))
    lengths = [len(timestamps) for _, timestamps in drained(merged)]
    assert sum(lengths) == 1000
    assert max(lengths) == NOVEL_RECORDS


def test_records_of_a_few_producers_come_in_large_runs() -> None:
    merged = order(max_records=5000)
    merged.add("instances", named([f"f{at % KINDS}" for at in range(1000)]))
    assert [len(timestamps) for _, timestamps in drained(merged)] == [1000]


def test_records_that_wait_keep_no_bytes_of_other_partitions_in_memory() -> None:
    """Small fetches of several partitions share a buffer; a partition may wait for a schema for hours."""
    merged = order()
    small = columns([5], first=0)
    tracemalloc.start()
    try:
        for offset in range(100):
            shared = RecordSpans(small.records.buffer + bytes(100_000), small.records.table.copy())
            shared.table[0] = offset
            merged.add("instances", FetchedColumns(shared, offset + 1, 100))
            del shared
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 500_000
    assert [run.raw.values[99] for run in [merged.next_run(0.0)] if run] == [b"0"]
