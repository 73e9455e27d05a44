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
from core.layout.plan import PlanRecord
from core.learners.ufft.layout import PAGE_ROWS, ClassEntry, PairForest, PairTree, RingRow, parameters_of


@kernel
def ring_capacity(plan: PlanRecord, entry: ClassEntry) -> int:
    """Return the number of rows that the ring of a class has room for."""
    most = int(parameters_of(plan).memory)
    return min(most, entry.ring_pages * PAGE_ROWS)


@kernel
def wants_page(plan: PlanRecord, entry: ClassEntry) -> bool:
    """Return whether the ring needs another page for its next row."""
    capacity = ring_capacity(plan, entry)
    if capacity >= int(parameters_of(plan).memory):
        return False
    return entry.ring_rows == capacity and entry.ring_next == 0


@kernel
def row_at(plan: PlanRecord, forest: PairForest, entry: ClassEntry, position: int) -> RingRow:
    """Return the row at a position of a ring."""
    page = position // PAGE_ROWS
    return forest.row(plan, entry.pages[page], position - page * PAGE_ROWS)


@kernel
def row_of_age(plan: PlanRecord, forest: PairForest, entry: ClassEntry, age: int) -> RingRow:
    """Return a row by its age: 0 is the newest."""
    position = entry.ring_next - 1 - age
    if position < 0:
        position += ring_capacity(plan, entry)
    return row_at(plan, forest, entry, position)


@kernel
def push(plan: PlanRecord, forest: PairForest, entry: ClassEntry, x, weight: float, grants: bool) -> bool:
    """Keep a record in its class's ring, replacing the oldest if it is full; return whether it is kept.

    grants: the ring may have the page that it wants.
    """
    if grants and wants_page(plan, entry):
        entry.ring_next = entry.ring_rows
        entry.pages[entry.ring_pages] = forest.pages
        entry.ring_pages += 1
        forest.pages += 1
    capacity = ring_capacity(plan, entry)
    if capacity == 0:
        return False
    position = entry.ring_next
    row = row_at(plan, forest, entry, position)
    row.arrival = forest.arrivals
    row.weight = weight
    for column in range(plan.attributes):
        value = x[column]
        row.values[column] = value if value - value == 0.0 else math.nan
    entry.ring_rows = max(entry.ring_rows, position + 1)
    entry.ring_next = position + 1 if position + 1 < capacity else 0
    return True


@kernel
def remembered(plan: PlanRecord, forest: PairForest, tree: PairTree, since: int) -> tuple[int, int]:
    """Return how many of the newest rows of a tree's two rings are among the last S of both.

    since: arrival number of the first row that counts.
    """
    a, b = 0, 0
    most = int(parameters_of(plan).memory)
    while a + b < most:
        of_first, of_second = -1, -1
        if a < tree.first.ring_rows:
            of_first = row_of_age(plan, forest, tree.first, a).arrival
        if b < tree.second.ring_rows:
            of_second = row_of_age(plan, forest, tree.second, b).arrival
        if max(of_first, of_second) < since:
            break
        if of_first > of_second:
            a += 1
        else:
            b += 1
    forest.replays += a + b
    return a, b
