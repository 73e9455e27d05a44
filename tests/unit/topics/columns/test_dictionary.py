"""A dictionary-encoded column is the list that it was made of."""

from hypothesis import given
from hypothesis import strategies as st

from topics.columns.dictionary import Dictionary

VALUES = st.lists(st.none() | st.sampled_from(["a", "b", "c"]), max_size=8)


@given(VALUES, st.integers(-9, 9), st.integers(-9, 9))
def test_a_column_and_its_slices_are_the_list(values: list[str | None], first: int, end: int) -> None:
    column = Dictionary.of(values)
    assert column == values
    assert list(column.values) == list(dict.fromkeys(values))
    assert column[first:end] == values[first:end]
    assert [column[at] for at in range(len(values))] == values
    assert Dictionary.of(column) is column
