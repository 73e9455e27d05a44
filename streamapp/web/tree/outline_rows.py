"""Outline rows: the nodes of a tree as the inspection returns them, found by number, feature and path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamapp.web.formatting import gap_in_words, moment, number

Row = Mapping[str, Any]
MISSING: Final = " (missing)"
"""Ends a condition of a path where the record had no value (core/tree/conditions.py)."""


class OutlineRows:
    """The nodes of one tree, parents first."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.by_number: dict[int, Row] = {row["node"]: row for row in rows}
        self.below: dict[int, int] = {}
        """By node, the number of nodes below it."""
        for row in reversed(rows):
            self.below[row["node"]] = sum(1 + self.below[child] for child in row["children"])

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def root(self) -> int | None:
        """Return the number of the root; None: there is no node."""
        return self.rows[0]["node"] if self.rows else None

    def above(self, node: int) -> list[int]:
        """Return the nodes from the root to the parent of a node."""
        path: list[int] = []
        parent = self.by_number[node]["parent"]
        while parent is not None:
            path.append(parent)
            parent = self.by_number[parent]["parent"]
        return path[::-1]

    def conditions(self, node: int) -> list[str]:
        """Return the conditions from the root to a node."""
        return [str(self.by_number[at]["branch"]) for at in [*self.above(node), node][1:]]

    def testing(self, text: str) -> list[int]:
        """Return the nodes whose test has a feature with the text in its name, parents first."""
        part = text.strip().casefold()
        if not part:
            return []
        return [
            row["node"]
            for row in self.rows
            if row["attribute"] is not None and part in str(row["attribute"]).casefold()
        ]

    def path(self, conditions: Sequence[str]) -> list[int] | None:
        """Return the nodes of a record's path from the root; None: the tree has no such path.

        conditions: texts of the branches. A cut tree ends earlier, and so does the path.
        """
        if self.root is None:
            return None
        path = [self.root]
        for condition in conditions:
            children = self.by_number[path[-1]]["children"]
            bare = condition.removesuffix(MISSING)
            following = [child for child in children if self.by_number[child]["branch"] == bare]
            if not following:
                return path if not children and self.by_number[path[-1]]["leaves_below"] else None
            path.append(following[0])
        return path


def matched(nodes: Sequence[Row], splits: Mapping[int, Row]) -> dict[int, Row]:
    """Return the splits that gave the nodes of a tree their present tests."""
    split_of: dict[int, Row] = {}
    for node in nodes:
        split = splits.get(node["node"])
        if split is None or not node["children"] or split["detail"].get("attribute") != node["attribute"]:
            continue
        threshold = split["detail"].get("threshold")
        if node["test"] == "numeric" and threshold != node["value"]:
            continue
        split_of[node["node"]] = split
    return split_of


def split_in_words(split: Row | None) -> str:
    """Return when a node got its test, and by which gap; None: the event is not known."""
    if split is None:
        return "the time of its split is not known: before the topic's first event, or in a background tree"
    when = f"split {moment(split['time_ms'])} after {number(split['version'])} labels"
    return f"{when}; {gap_in_words(split['detail'])}"
