"""Pruning of C4.5: expected errors by U_CF decide between a subtree, its largest branch and a leaf.

Quinlan, *C4.5: Programs for Machine Learning* (1993), chapter 4, with the formulas of its program.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.batch._growing import (
    ATTRIBUTE,
    CHILDREN,
    CLASS,
    END,
    FIRST,
    LEAF,
    MISSING,
    START,
    branch_of,
    count_classes,
    majority,
)
from core.kernels.jit import kernel

SLACK: Final = 0.1
"""Number of errors by which a leaf or a branch may be worse than the subtree that it replaces."""

CONFIDENCE: Final = 0
DEVIATION: Final = 1
RAISING: Final = 2
OPTIONS: Final = 3

# A frame of the stack
NODE: Final = 0
NEXT: Final = 1
NEW: Final = -1

# Upper tails of the normal distribution and their quantiles; C4.5 interpolates between them.
TAILS: Final = (0.0, 0.001, 0.005, 0.01, 0.05, 0.10, 0.20, 0.40, 1.00)
DEVIATIONS: Final = (4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.00)


def squared_deviation(confidence: float) -> float:
    """Return the square of C4.5's normal deviate for a confidence, interpolated in its table."""
    deviation = float(np.interp(confidence, TAILS, DEVIATIONS))
    return deviation * deviation


@kernel
def added_errors(n: float, errors: float, confidence: float, square: float) -> float:
    """Return n·U_CF(errors, n) - errors: the expected errors beyond the observed errors.

    Exact for no errors, C4.5's normal approximation for one and more, and its rule of thumb for nearly n
    errors.
    """
    if n <= 0.0:
        return 0.0
    if errors == 0.0:
        return n * (1.0 - math.exp(math.log(confidence) / n))
    if errors + 0.5 >= n:
        return 0.67 * (n - errors)
    seen = errors + 0.5
    upper = seen + square / 2.0 + math.sqrt(square * (seen * (1.0 - seen / n) + square / 4.0))
    return n * upper / (n + square) - errors


@kernel("float64(float64, float64, float64, float64)", alone=True)
def added(n: float, errors: float, confidence: float, square: float) -> float:
    """``added_errors`` for Python."""
    return added_errors(n, errors, confidence, square)


@kernel
def as_leaf(tree, node: int) -> None:
    """Cut a node's subtree off."""
    tree[node, ATTRIBUTE], tree[node, CHILDREN] = LEAF, 0


@kernel
def leaf_errors(counts, total: int, options) -> float:
    """Return the expected errors of a leaf with these class counts."""
    wrong = total - counts[majority(counts)]
    return wrong + added_errors(float(total), float(wrong), options[CONFIDENCE], options[DEVIATION])


@kernel
def distribute_rows(columns, values, rows, bounds, tree, threshold, node: int, moved) -> Any:
    """Move rows together by child; return int64[child + 1], the start of each child's rows."""
    start, end = bounds
    a, children = tree[node, ATTRIBUTE], tree[node, CHILDREN]
    first_at = np.zeros(children + 1, dtype=np.int64)
    for i in range(start, end):
        b = branch_of(columns[a, rows[i]], values[a], threshold[node], tree[node, MISSING])
        first_at[1 + b] += 1
    first_at[0] = start
    for child in range(children):
        first_at[1 + child] += first_at[child]
    place = first_at.copy()
    for i in range(start, end):
        b = branch_of(columns[a, rows[i]], values[a], threshold[node], tree[node, MISSING])
        moved[place[b]] = rows[i]
        place[b] += 1
    rows[start:end] = moved[start:end]
    return first_at


@kernel
def estimate(
    columns,
    y,
    values,
    rows,
    bounds,
    tree,
    threshold,
    root: int,
    counts,
    options,
) -> float:
    """Return the expected errors of a subtree that gets rows[start:end]; nothing is changed.

    counts: int64[node, class], with any content.
    """
    start, end = bounds
    ends = np.zeros(end - start, dtype=np.int64)
    for i in range(start, end):
        node = root
        while tree[node, ATTRIBUTE] >= 0:
            a = tree[node, ATTRIBUTE]
            value = columns[a, rows[i]]
            node = tree[node, FIRST] + branch_of(value, values[a], threshold[node], tree[node, MISSING])
        ends[i - start] = node
        counts[node, :] = 0
    for i in range(start, end):
        counts[ends[i - start], y[rows[i]]] += 1
    expected = 0.0
    for node in ends:
        total = counts[node].sum()
        if total > 0:
            expected += leaf_errors(counts[node], total, options)
            counts[node, :] = 0  # counted once
    return expected


@kernel
def collapse(tree, counts, nodes: int) -> None:
    """Cut off subtrees that make no fewer errors on their own rows than a leaf."""
    errors = np.zeros(nodes, dtype=np.int64)
    for node in range(nodes - 1, -1, -1):  # children have higher numbers
        wrong = counts[node].sum() - counts[node, tree[node, CLASS]]
        errors[node] = wrong
        if tree[node, ATTRIBUTE] >= 0:
            first = tree[node, FIRST]
            below = errors[first : first + tree[node, CHILDREN]].sum()
            if wrong <= below:
                as_leaf(tree, node)
            else:
                errors[node] = below


@kernel(
    "float64(float64[:, ::1], int64[::1], int64[::1], int64[:, ::1], float64[::1], int64[:, ::1], int64,"
    " float64[::1])",
    alone=True,
)
def prune(columns, y, values, tree, threshold, counts, nodes: int, options) -> float:
    """Prune a tree that ``grow`` has made of these rows; return the expected errors of the pruned tree.

    Children come before parents, with a stack instead of recursion: a frame has a node, the next of its
    children (NEW: the node has not started), and the expected errors of the finished children. Nodes that are
    cut off stay in the arrays, without a parent.
    """
    collapse(tree, counts, nodes)
    n, classes = columns.shape[1], counts.shape[1]
    rows, moved, own = np.arange(n), np.zeros(n, dtype=np.int64), np.zeros(classes, dtype=np.int64)
    others = np.zeros((nodes, classes), dtype=np.int64)
    stack = np.zeros((nodes, 2), dtype=np.int64)
    below = np.zeros(nodes)
    stack[0, NEXT] = NEW
    top, returned = 0, 0.0
    while top >= 0:
        node = stack[top, NODE]
        start, end = tree[node, START], tree[node, END]
        if stack[top, NEXT] == NEW:
            count_classes(y, rows, start, end, counts[node])
            if end > start:
                tree[node, CLASS] = majority(counts[node])
            stack[top, NEXT], below[top] = 0, 0.0
            if tree[node, ATTRIBUTE] >= 0:
                first_at = distribute_rows(columns, values, rows, (start, end), tree, threshold, node, moved)
                for child in range(tree[node, CHILDREN]):
                    at = tree[node, FIRST] + child
                    tree[at, START], tree[at, END] = first_at[child], first_at[child + 1]
                    tree[at, CLASS] = tree[node, CLASS]  # if it stays empty
        if tree[node, ATTRIBUTE] >= 0 and stack[top, NEXT] < tree[node, CHILDREN]:
            stack[top + 1, NODE], stack[top + 1, NEXT] = tree[node, FIRST] + stack[top, NEXT], NEW
            stack[top, NEXT] += 1
            top += 1
            continue
        own[:] = counts[node]
        returned = leaf_errors(own, end - start, options)
        if tree[node, ATTRIBUTE] >= 0:
            largest = tree[node, FIRST]
            for at in range(tree[node, FIRST] + 1, tree[node, FIRST] + tree[node, CHILDREN]):
                if tree[at, END] - tree[at, START] > tree[largest, END] - tree[largest, START]:
                    largest = at
            of_branch = math.inf
            if options[RAISING] != 0.0:
                of_branch = estimate(
                    columns, y, values, rows, (start, end), tree, threshold, largest, others, options
                )
            if returned <= below[top] + SLACK and returned <= of_branch + SLACK:
                as_leaf(tree, node)
            elif of_branch <= below[top] + SLACK:
                tree[node, :] = tree[largest, :]
                tree[node, START], tree[node, END] = start, end
                threshold[node] = threshold[largest]
                stack[top, NEXT] = NEW
                continue
            else:
                returned = below[top]
        top -= 1
        if top >= 0:
            below[top] += returned
    return returned
