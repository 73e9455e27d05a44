"""Spans: columns over a buffer are what the lists were that they were made of."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.codecs.compiled.keys import code_headers
from topics.columns.records import Headers, RawRecords
from topics.columns.spans import (
    CodedKeys,
    HeaderSpans,
    RecordSpans,
    Spans,
    distinct_headers,
    header_counts,
)

MAYBE = st.none() | st.binary(max_size=200)
RECORDS = st.lists(
    st.tuples(
        st.integers(0, 1 << 62),
        st.integers(-(1 << 62), 1 << 62),
        MAYBE,
        MAYBE,
        st.lists(
            st.tuples(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=70), MAYBE),
            max_size=3,
        ),
    ),
    max_size=9,
)
Row = tuple[Any, ...]


def spans(rows: Sequence[Row]) -> RecordSpans:
    return (
        RecordSpans.of(*(list(column) for column in zip(*rows, strict=True))) if rows else RecordSpans.none()
    )


def rows_of(records: RecordSpans | RawRecords) -> list[Row]:
    headers = map(list, records.headers)
    return list(zip(records.offsets, records.timestamps, records.keys, records.values, headers, strict=True))


@given(RECORDS)
def test_every_record_comes_back(rows: list[Row]) -> None:
    made = spans(rows)
    assert rows_of(made) == rows
    assert made.value_bytes == sum(len(row[3] or b"") for row in rows)
    for at, row in enumerate(rows):
        there = (
            made.offsets[at],
            made.timestamps[at],
            made.keys[at],
            made.values[at],
            list(made.headers[at]),
        )
        assert there == row
    assert made.headers.are_none == (not any(row[4] for row in rows))
    assert made.values.longest == max((len(row[3] or b"") for row in rows), default=0)


@given(RECORDS, st.integers(0, 9), st.integers(0, 9))
def test_a_part_is_what_lies_between(rows: list[Row], start: int, stop: int) -> None:
    made = RawRecords.over("t", 0, spans(rows))
    assert rows_of(made.part(start, stop)) == rows[start:stop]
    columns = [
        list(column) for column in (made.offsets, made.timestamps, made.keys, made.values, made.headers)
    ]
    assert rows_of(RawRecords("t", 0, *columns).part(start, stop)) == rows[start:stop]  # type: ignore[arg-type]
    assert list(made.values[start:stop]) == [row[3] for row in rows[start:stop]]
    assert list(map(list, made.headers[start:stop])) == [row[4] for row in rows[start:stop]]


@given(st.lists(st.tuples(RECORDS, st.integers(0, 9), st.integers(0, 9)), max_size=4))
def test_parts_are_joined_in_their_order(parts: list[tuple[list[Row], int, int]]) -> None:
    joined = RecordSpans.joined([spans(rows).part(start, stop) for rows, start, stop in parts])
    assert rows_of(joined) == [row for rows, start, stop in parts for row in rows[start:stop]]


@given(RECORDS, st.integers(0, 9))
def test_parts_of_one_buffer_are_joined_without_a_copy(rows: list[Row], at: int) -> None:
    made = spans(rows)
    joined = RecordSpans.joined([made.part(at, len(rows)), made.part(0, at)])
    assert rows_of(joined) == rows[at:] + rows[:at]
    assert joined.buffer is made.buffer


@given(RECORDS, st.data())
def test_chosen_records(rows: list[Row], data: st.DataObject) -> None:
    at_chosen = [at for at in range(len(rows)) if data.draw(st.booleans())]
    chosen = RawRecords.over("t", 0, spans(rows)).chosen(at_chosen)
    assert rows_of(chosen) == [rows[at] for at in at_chosen]
    assert chosen.spans.table.flags.c_contiguous, "kernels read its rows"


@pytest.mark.parametrize("by_kernel", [False, True])
@given(RECORDS, st.lists(st.integers(0, 8), max_size=30))
def test_headers_that_are_alike_are_read_once(by_kernel: bool, rows: list[Row], chosen: list[int]) -> None:
    repeated = [rows[at % len(rows)] for at in chosen] if rows else []
    headers = spans(repeated).headers
    if by_kernel:
        code_headers(headers)
    assert list(map(list, headers)) == [row[4] for row in repeated]
    read = [tuple(pairs) for pairs in distinct_headers(headers)]
    expected = list(dict.fromkeys(tuple(row[4]) for row in repeated))
    assert read == (expected if any(expected) else [()])


def test_numbers_are_arrays_for_who_wants_them() -> None:
    offsets = spans([(5, 1, None, None, []), (7, 2, None, None, [])]).offsets
    assert np.array(offsets, dtype=np.int64).tolist() == [5, 7]
    assert offsets == [5, 7]
    assert offsets != [5]
    assert offsets != {5, 7}
    assert repr(offsets) == "[5, 7]"


def test_first_bytes_are_those_of_values_that_all_have_one() -> None:
    assert Spans.of([b"ab", b"b", b"a"]).first_bytes() == {97, 98}
    assert Spans.of([b"ab", b""]).first_bytes() is None
    assert Spans.of([b"ab", None]).first_bytes() is None


def test_keys_whose_codes_are_known_are_made_of_the_distinct_ones() -> None:
    keys = Spans.of([b"a", b"b", b"a", None])
    keys.coded = CodedKeys([b"a", b"b", None], np.array([0, 1, 0, 2], dtype=np.int32))
    first, _, third, none = keys
    assert first is third
    assert (first, none) == (b"a", None)


VALUES = st.lists(MAYBE, max_size=9)


@given(st.lists(VALUES, min_size=1, max_size=4), st.data())
def test_values_are_like_a_list(parts: list[list[bytes | None]], data: st.DataObject) -> None:
    cells = [cell for part in parts for cell in part]
    column = Spans.joined([Spans.of(part) for part in parts])
    assert column == cells
    assert column.total == sum(map(len, filter(None, cells)))
    assert column.longest == max((len(cell or b"") for cell in cells), default=0)
    assert [column[at] for at in range(-len(cells), len(cells))] == cells + cells
    a, b = (data.draw(st.integers(-9, 9)) for _ in range(2))
    assert column[a:b] == cells[a:b]
    assert column[::-2] == cells[::-2]
    order = data.draw(st.lists(st.integers(0, len(cells) - 1), max_size=5)) if cells else []
    assert column.where(np.array(order, dtype=np.int64)) == [cells[at] for at in order]


@given(st.lists(st.binary(max_size=5), max_size=9), st.integers(0, 9))
def test_values_one_behind_the_other(cells: list[bytes], at: int) -> None:
    starts = np.cumsum([0, *map(len, cells)], dtype=np.int64)
    column = Spans.adjacent(b"".join(cells), starts)
    assert column == cells
    joined = Spans.joined([column[at:], column[:at]])
    assert joined == cells[at:] + cells[:at]
    assert joined.buffer is column.buffer


@pytest.mark.parametrize("wrong", ["text", 1, [b"a"]])
def test_what_is_not_bytes_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError):
        Spans.of([b"a", wrong])


def test_headers_are_counted_without_being_read() -> None:
    counts = [0, 1, 63, 64, 0, 300]
    rows: list[Headers] = [[("", b"")] * count for count in counts]
    n = len(counts)
    headers = RecordSpans.of(range(n), [0] * n, [None] * n, [None] * n, rows).headers
    assert headers.counts.tolist() == header_counts(rows).tolist() == counts
    assert headers[3:6].counts.tolist() == counts[3:6]
    assert headers[:0].counts.tolist() == header_counts([]).tolist() == []
    millions = HeaderSpans(b"\x80\x89\x7a", np.array([0]), np.array([3]))  # only their number is here
    assert millions.counts.tolist() == [1_000_000]
