"""Columns of bytes and headers are sequences of what they were made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.binary_column import BinaryColumn, HeaderColumns

values = st.lists(st.none() | st.binary(max_size=5), max_size=6)
headers = st.lists(
    st.lists(st.tuples(st.text(max_size=2), st.none() | st.binary(max_size=3)), max_size=3), max_size=6
)


@given(values, st.integers(-7, 7), st.integers(-7, 7))
def test_a_column_and_its_slices_hold_the_values(
    given_values: list[bytes | None], first: int, end: int
) -> None:
    column = BinaryColumn.of(given_values)
    assert list(column) == given_values
    assert list(column[first:end]) == given_values[first:end]
    assert list(column[first:][:end]) == given_values[first:][:end]
    assert BinaryColumn.of(column) is column
    assert column[first:end].buffer is column.buffer


@given(headers, st.integers(-7, 7), st.integers(-7, 7))
def test_headers_in_columns_and_their_slices_are_the_headers(
    given_headers: list[list[tuple[str, bytes | None]]], first: int, end: int
) -> None:
    columns = HeaderColumns.of(given_headers)
    assert [list(each) for each in columns] == given_headers
    assert [list(each) for each in columns[first:end]] == given_headers[first:end]
    assert HeaderColumns.of(columns) is columns


def test_a_place_beyond_the_end_and_a_step_are_refused() -> None:
    column, of_headers = BinaryColumn.of([b"a", None]), HeaderColumns.of([[("a", b"")], []])
    for each in (column, of_headers):
        with pytest.raises(IndexError):
            each[2]
        with pytest.raises(ValueError, match="step=2 must be 1"):
            each[::2]


@pytest.mark.parametrize("wrong", ["text", 1, [b"a"]])
def test_what_is_not_bytes_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError):
        BinaryColumn.of([b"a", wrong])  # type: ignore[list-item]
