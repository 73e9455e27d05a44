"""Quantiles of first values: values are kept in ascending order, and cut into equal parts at the end."""

from __future__ import annotations

import math

from core.kernels.jit import kernel


@kernel
def put(floats, first: int, n: int, x: float) -> None:
    """Insert a value into n ascending values that begin at word ``first``."""
    place = n
    while place > 0 and floats[first + place - 1] > x:
        floats[first + place] = floats[first + place - 1]
        place -= 1
    floats[first + place] = x


@kernel
def cut(floats, first: int, n: int, parts: int, edges: int) -> int:
    """Write the edges that cut n ascending values into equal parts; return their number.

    An edge between different values is halfway. Equal edges are merged, and none is at or above the last
    value; the unused places among the ``parts - 1`` hold NaN.
    """
    n_edges, last = 0, -math.inf
    for j in range(1, parts):
        i = j * n // parts
        if i == 0:
            continue
        edge = floats[first + i - 1] * 0.5 + floats[first + i] * 0.5
        if floats[first + i - 1] == floats[first + i]:
            edge = floats[first + i]
        if edge > last and edge < floats[first + n - 1]:
            floats[edges + n_edges] = edge
            n_edges, last = n_edges + 1, edge
    for i in range(n_edges, parts - 1):
        floats[edges + i] = math.nan
    return n_edges
