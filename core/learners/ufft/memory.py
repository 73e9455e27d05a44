"""Memory of the trees: for each class a ring of its last S labelled rows, shared by all trees of the class.

The memory of a tree consists of the last S records that it learned. They are among the last S of its two
classes, so that one ring for each class holds them: the rings are merged by arrival number, without the rows
from before the tree was planted.

A ring is made of pages, which are added one by one: a rare class takes little memory. Its oldest row lies at
0, or at the next position once the ring is full; hence a full ring gets another page only when that position
is 0.
"""

from __future__ import annotations

import math

from core.kernels.jit import kernel
from core.learners.ufft import layout as of
from core.tree import layout as at


@kernel
def ring_capacity(plan, params, ints, entry: int) -> int:
    """Return the number of rows that a ring has room for; entry: first word of its class."""
    most = int(of.parameter(plan, params, of.MEMORY))
    return min(most, ints[entry + of.RING_PAGES] * of.PAGE_ROWS)


@kernel
def wants_page(plan, params, ints, entry: int) -> bool:
    """Return whether the ring needs another page for its next row."""
    capacity = ring_capacity(plan, params, ints, entry)
    if capacity >= int(of.parameter(plan, params, of.MEMORY)):
        return False
    return ints[entry + of.RING_ROWS] == capacity and ints[entry + of.RING_NEXT] == 0


@kernel
def row_at(plan, ints, t: int, entry: int, position: int) -> int:
    """Return the first word of the row at a position of a ring."""
    page = position // of.PAGE_ROWS
    first = of.page_at(plan, ints, t, ints[entry + of.CLASS_FIELDS + page])
    return first + (position - page * of.PAGE_ROWS) * (of.ROW_FIELDS + plan[at.PLAN_ATTRIBUTES])


@kernel
def row_of_age(plan, params, ints, t: int, entry: int, age: int) -> int:
    """Return the first word of a row by its age: 0 is the newest."""
    position = ints[entry + of.RING_NEXT] - 1 - age
    if position < 0:
        position += ring_capacity(plan, params, ints, entry)
    return row_at(plan, ints, t, entry, position)


@kernel
def push(plan, params, ints, floats, t: int, entry: int, x, weight: float, grants: bool) -> bool:
    """Keep a record in its class's ring, replacing the oldest if it is full; return whether it is kept.

    grants: the ring may have the page that it wants.
    """
    if grants and wants_page(plan, params, ints, entry):
        ints[entry + of.RING_NEXT] = ints[entry + of.RING_ROWS]
        ints[entry + of.CLASS_FIELDS + ints[entry + of.RING_PAGES]] = ints[t + of.PAGES]
        ints[entry + of.RING_PAGES] += 1
        ints[t + of.PAGES] += 1
    capacity = ring_capacity(plan, params, ints, entry)
    if capacity == 0:
        return False
    position = ints[entry + of.RING_NEXT]
    row = row_at(plan, ints, t, entry, position)
    ints[row + of.ROW_ARRIVAL] = ints[t + of.ARRIVALS]
    floats[row + of.ROW_WEIGHT] = weight
    for column in range(plan[at.PLAN_ATTRIBUTES]):
        value = x[column]
        floats[row + of.ROW_FIELDS + column] = value if value - value == 0.0 else math.nan
    ints[entry + of.RING_ROWS] = max(ints[entry + of.RING_ROWS], position + 1)
    ints[entry + of.RING_NEXT] = position + 1 if position + 1 < capacity else 0
    return True


@kernel
def remembered(plan, params, ints, t: int, first: int, second: int, since: int) -> tuple[int, int]:
    """Return how many of the newest rows of two rings are among the last S of both from an arrival on.

    first, second: entries of the classes.
    """
    a, b = 0, 0
    most = int(of.parameter(plan, params, of.MEMORY))
    while a + b < most:
        of_first, of_second = -1, -1
        if a < ints[first + of.RING_ROWS]:
            of_first = ints[row_of_age(plan, params, ints, t, first, a) + of.ROW_ARRIVAL]
        if b < ints[second + of.RING_ROWS]:
            of_second = ints[row_of_age(plan, params, ints, t, second, b) + of.ROW_ARRIVAL]
        if max(of_first, of_second) < since:
            break
        if of_first > of_second:
            a += 1
        else:
            b += 1
    ints[t + of.REPLAYS] += a + b
    return a, b
