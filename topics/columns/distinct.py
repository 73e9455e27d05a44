"""Distinct numbers of a column, found without sorting, and answers reordered by their classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.kernels.jit import kernel, row_of, start_of


def distinct(numbers: Any) -> tuple[Any, Any]:
    """Return the first index of each distinct number (int64[m]) and the code of each number (int64[n]).

    The distinct numbers are ordered by their first occurrence.
    """
    n = len(numbers)
    table = np.full(1 << (2 * n).bit_length(), -1, dtype=np.int64)
    first, code = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    n_distinct = number_codes(np.ascontiguousarray(numbers, dtype=np.int64), table, first, code)
    return first[:n_distinct], code


@kernel("int64(int64[::1], int64[::1], int64[::1], int64[::1])")
def number_codes(numbers, table, first, code) -> int:
    """Give equal numbers equal codes, in order of first occurrence; return how many codes there are.

    `table` is int64[2**k] with more than n cells, all -1, and is overwritten. `first` is int64[n]: the index
    at which the number of a code occurs first. `code` is int64[n].
    """
    places, mask, n_codes = start_of(table), len(table) - 1, 0
    for i in range(len(numbers)):
        key = np.uint64(numbers[i]) * np.uint64(0x9E3779B97F4A7C15)
        place = np.int64((key ^ (key >> np.uint64(32))) & np.uint64(mask))
        while places[place] >= 0 and numbers[first[places[place]]] != numbers[i]:
            place = (place + 1) & mask
        if places[place] < 0:
            places[place] = n_codes
            first[n_codes] = i
            n_codes += 1
        code[i] = places[place]
    return n_codes


@kernel(
    "void(int32[::1], float64[:, ::1], int64[::1], int32[:, ::1], int64[:, ::1], int32[::1], float64[:, ::1])"
)
def put_in_order(prediction, probability, number, codes, columns, new_prediction, new_probability) -> None:
    """Reorder the classes of answers.

    `prediction` is int32[n], class codes, -1: none. `probability` is float64[n, at least K]. `number` is
    int64[n]: which of the m orders an answer uses. `codes` is int32[m, K + 1]: the new code of each class,
    then the new code of "none". `columns` is int64[m, K]: the old column of each new code.
    """
    n_classes = columns.shape[1]
    for row in range(len(prediction)):
        which = number[row]
        mine, new, old = row_of(columns, which), row_of(new_probability, row), row_of(probability, row)
        code = prediction[row] if prediction[row] >= 0 else n_classes
        new_prediction[row] = codes[which, code]
        for column in range(n_classes):
            new[column] = old[mine[column]]
