"""Trees as rows of the inspection, of any shape and size."""

from __future__ import annotations

import random
from typing import Any

FEATURES = ("amount", "age", "country", "items", "hour")


def tree_of(shape: list[int]) -> list[dict[str, Any]]:
    """Return the nodes of a tree, parents first; shape: the number of children by node, 0 for a leaf.

    Nodes for which the shape has no number are leaves.
    """
    rows: list[dict[str, Any]] = []
    waiting: list[tuple[int | None, int, str | None]] = [(None, 0, None)]
    for number, n_children in enumerate(shape):
        if not waiting:
            break
        parent, depth, branch = waiting.pop(0)
        rows.append(_row(number, parent, depth, branch, n_children))
        waiting += [
            (number, depth + 1, f"{FEATURES[number % 5]} {'<=' if child == 0 else '>'} {number}.{child}")
            for child in range(n_children)
        ]
    for parent, depth, branch in waiting:
        rows.append(_row(len(rows), parent, depth, branch, 0))
    children: dict[int, list[int]] = {}
    for row in rows:
        if row["parent"] is not None:
            children.setdefault(row["parent"], []).append(row["node"])
    for row in reversed(rows):
        row["children"] = children.get(row["node"], [])
        below = [rows[child] for child in row["children"]]
        if below:
            row["records"] = row["own"] + sum(each["records"] for each in below)
            row["masses"] = [sum(parts) for parts in zip(*(each["masses"] for each in below), strict=True)]
            row["majority"] = row["masses"].index(max(row["masses"]))
            row["purity"] = max(row["masses"]) / (sum(row["masses"]) or 1.0)
    return rows


def _row(number: int, parent: int | None, depth: int, branch: str | None, n_children: int) -> dict[str, Any]:
    masses = [float(number % 7), float(number % 4)]
    return {
        "node": number,
        "parent": parent,
        "depth": depth,
        "branch": branch,
        "test": "numeric" if n_children else None,
        "attribute": FEATURES[number % 5] if n_children else None,
        "value": float(number) if n_children else None,
        "children": [],
        "records": 10.0 + number % 13,
        "own": 10.0 + number % 13,
        "masses": masses,
        "purity": max(masses) / sum(masses) if sum(masses) else None,
        "majority": masses.index(max(masses)),
        "leaves_below": 0,
    }


def random_tree(n: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return a binary tree of at least n nodes, deeper on some sides."""
    drawn = random.Random(seed)
    rows = 1
    shape: list[int] = []
    waiting = 1
    while rows < n:
        splits = waiting == 1 or drawn.random() < 0.6
        shape.append(2 if splits else 0)
        waiting += 1 if splits else -1
        rows += 2 if splits else 0
    return tree_of(shape)
