"""Sorting: a stable merge sort of numbers, each with a code, in place and with the caller's buffers."""

from __future__ import annotations

from typing import Final

from core.kernels.jit import called

RUN: Final = 8
"""Neighbours that are sorted by insertion before runs are merged."""


@called
def sort_pairs(value, code, n: int, other_value, other_code) -> None:
    """Sort n values, each with its code, ascending and stable; sorted input costs one pass.

    value: float64[n], no NaN; code: int64[n]; other_value, other_code: buffers of the same shape.
    """
    rising = 1
    while rising < n and value[rising - 1] <= value[rising]:
        rising += 1
    if rising >= n:
        return
    for first in range(0, n, RUN):
        for i in range(first + 1, min(first + RUN, n)):
            v, c, j = value[i], code[i], i
            while j > first and value[j - 1] > v:
                value[j], code[j] = value[j - 1], code[j - 1]
                j -= 1
            value[j], code[j] = v, c
    width, flips = RUN, 0
    while width < n:
        for first in range(0, n, 2 * width):
            i, middle, end = first, min(first + width, n), min(first + 2 * width, n)
            j = middle
            if middle >= end or value[middle - 1] <= value[middle]:  # already in order: few values, many rows
                for k in range(first, end):
                    other_value[k], other_code[k] = value[k], code[k]
                continue
            for k in range(first, end):
                if i < middle and (j >= end or value[i] <= value[j]):
                    other_value[k], other_code[k] = value[i], code[i]
                    i += 1
                else:
                    other_value[k], other_code[k] = value[j], code[j]
                    j += 1
        value, other_value = other_value, value
        code, other_code = other_code, code
        width, flips = 2 * width, flips + 1
    if flips % 2 == 1:
        for k in range(n):
            other_value[k], other_code[k] = value[k], code[k]
