"""Headers as arrays are sequences of what they were made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.columns.header_columns import HeaderColumns
from topics.columns.spans import Spans

Given = list[list[tuple[str, bytes | None]]]

headers = st.lists(
    st.lists(st.tuples(st.text(max_size=2), st.none() | st.binary(max_size=3)), max_size=3), max_size=6
)


@given(headers, st.integers(-7, 7), st.integers(-7, 7))
def test_headers_in_columns_and_their_slices_are_the_headers(
    given_headers: list[list[tuple[str, bytes | None]]], first: int, end: int
) -> None:
    columns = HeaderColumns.of(given_headers)
    assert [list(pairs) for pairs in columns] == given_headers
    assert [list(pairs) for pairs in columns[first:end]] == given_headers[first:end]
    assert HeaderColumns.of(columns) is columns


def test_a_place_beyond_the_end_and_a_step_are_refused() -> None:
    columns = HeaderColumns.of([[("a", b"")], []])
    with pytest.raises(IndexError):
        columns[2]
    with pytest.raises(ValueError, match="step=2 must be 1"):
        columns[::2]


@given(headers, headers, st.data())
def test_columns_are_chosen_joined_and_put_behind_each_other_as_lists_are(
    some: Given, others: Given, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(some)))
    columns, lists = HeaderColumns.of(some)[first:], some[first:]
    order = data.draw(st.lists(st.sampled_from(range(len(lists))), max_size=6)) if lists else []
    taken = columns.where(np.array(order, dtype=np.int64))
    assert [list(pairs) for pairs in taken] == [lists[at] for at in order]
    joined = HeaderColumns.joined([columns, HeaderColumns.of(others), columns])
    assert [list(pairs) for pairs in joined] == lists + others + lists
    alike = others[: len(lists)] + [[("b", b"")]] * (len(lists) - len(others))
    both = columns.followed_by(HeaderColumns.of(alike))
    assert [list(pairs) for pairs in both] == [[*a, *b] for a, b in zip(lists, alike, strict=True)]


@given(st.lists(st.tuples(st.none() | st.binary(max_size=3), st.binary(max_size=3)), min_size=1, max_size=5))
def test_headers_that_all_records_have_are_made_of_their_columns(
    rows: list[tuple[bytes | None, bytes]],
) -> None:
    columns = [Spans.of([a for a, _ in rows]), Spans.of([b for _, b in rows])]
    columns_made = HeaderColumns.uniform(["a", "b"], columns)
    assert [list(pairs) for pairs in columns_made] == [[("a", a), ("b", b)] for a, b in rows]
