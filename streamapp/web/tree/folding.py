"""Folding: the nodes of a tree that are drawn, and those that are folded below them.

At most SHOWN_MAX nodes are drawn at a time, however large the tree is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from streamapp.web.tree.outline_rows import OutlineRows

SHOWN_MAX: Final = 400
"""Nodes that are drawn, at most."""
DEPTH: Final = 4
"""Levels below the root that are unfolded at first."""
FIRST_MAX: Final = 60
"""Nodes that are drawn at first, at most: about as many as a person looks through."""


class Folding:
    """Unfolded nodes of one tree."""

    def __init__(self, tree: OutlineRows) -> None:
        self._tree = tree
        self._open: set[int] = set()
        self.unfold_to(DEPTH, FIRST_MAX)

    def shown(self) -> list[int]:
        """Return the drawn nodes in the order of the drawing: depth first, children in their order."""
        order: list[int] = []
        stack = [] if self._tree.root is None else [self._tree.root]
        while stack:
            node = stack.pop()
            order.append(node)
            if node in self._open:
                stack.extend(reversed(self._tree.by_number[node]["children"]))
        return order

    def is_open(self, node: int) -> bool:
        """Return whether the children of a node are drawn, if the node is."""
        return node in self._open

    def toggle(self, node: int) -> bool:
        """Fold or unfold a node; return False if too many nodes would be drawn."""
        if node in self._open:
            self._open.discard(node)
            return True
        return self._unfold([node])

    def unfold_to(self, depth: int, most: int = SHOWN_MAX) -> bool:
        """Unfold the levels above a depth, and fold the rest; return whether all of them are unfolded."""
        self._open.clear()
        root = self._tree.root
        waiting = deque([] if root is None else [root])
        drawn = len(waiting)
        while waiting:
            row = self._tree.by_number[waiting.popleft()]
            if not row["children"] or row["depth"] >= depth:
                continue
            if drawn + len(row["children"]) > most:
                return False
            drawn += len(row["children"])
            self._open.add(row["node"])
            waiting.extend(row["children"])
        return True

    def reveal(self, nodes: Iterable[int]) -> int:
        """Unfold the paths to nodes, in their order; return how many of them are drawn now."""
        revealed = 0
        for node in nodes:
            if not self._unfold(self._tree.above(node)):
                break
            revealed += 1
        return revealed

    def _unfold(self, nodes: Iterable[int]) -> bool:
        before = set(self._open)
        self._open.update(node for node in nodes if self._tree.by_number[node]["children"])
        if len(self.shown()) <= SHOWN_MAX:
            return True
        self._open = before
        return False
