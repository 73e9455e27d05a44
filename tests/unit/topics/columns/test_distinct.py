"""Distinct numbers, beside numpy's, which sorts; and answers in another order of classes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topics.columns.distinct import distinct, put_in_order

WORDS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.integers(-3, 3) | WORDS | st.integers(0, 9).map(lambda n: n << 32), max_size=60))
def test_distinct_numbers_in_order_of_appearance(numbers: list[int]) -> None:
    column = np.array(numbers, dtype=np.int64)
    first, code = distinct(column)
    _, first_wanted = np.unique(column, return_index=True)
    assert first.tolist() == sorted(first_wanted.tolist())
    assert column[first][code].tolist() == numbers


@given(st.data(), st.integers(0, 5), st.integers(0, 12), st.integers(0, 2))
def test_answers_name_their_classes_in_another_order(
    data: st.DataObject, n_classes: int, n: int, wider: int
) -> None:
    orders = [data.draw(st.permutations(range(n_classes))) for _ in range(3)]
    number = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), dtype=np.int64)
    codes = data.draw(st.lists(st.integers(-1, n_classes - 1), min_size=n, max_size=n))
    prediction = np.array(codes, dtype=np.int32)
    width = n_classes + wider
    probability = np.arange(n * width, dtype=np.float64).reshape(n, width)
    columns = np.array(orders, dtype=np.int64).reshape(3, n_classes)
    new_codes = np.array([[*np.argsort(order).tolist(), -1] for order in orders], dtype=np.int32)
    codes_written, new = np.empty(n, dtype=np.int32), np.empty((n, n_classes))
    put_in_order(prediction, probability, number, new_codes, columns, codes_written, new)
    for row in range(n):
        order = orders[number[row]]
        assert new[row].tolist() == [probability[row, column] for column in order]
        assert codes_written[row] == (-1 if codes[row] < 0 else order.index(codes[row]))
