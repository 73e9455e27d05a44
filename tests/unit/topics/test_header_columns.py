"""Headers as arrays are sequences of what they were made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.header_columns import HeaderColumns

headers = st.lists(
    st.lists(st.tuples(st.text(max_size=2), st.none() | st.binary(max_size=3)), max_size=3), max_size=6
)


@given(headers, st.integers(-7, 7), st.integers(-7, 7))
def test_headers_in_columns_and_their_slices_are_the_headers(
    given_headers: list[list[tuple[str, bytes | None]]], first: int, end: int
) -> None:
    columns = HeaderColumns.of(given_headers)
    assert [list(each) for each in columns] == given_headers
    assert [list(each) for each in columns[first:end]] == given_headers[first:end]
    assert HeaderColumns.of(columns) is columns


def test_a_place_beyond_the_end_and_a_step_are_refused() -> None:
    columns = HeaderColumns.of([[("a", b"")], []])
    with pytest.raises(IndexError):
        columns[2]
    with pytest.raises(ValueError, match="step=2 must be 1"):
        columns[::2]
