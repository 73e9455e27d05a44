"""Layout: the places of drawn nodes. The root is at the left, children are right of their parent.

Ends of the drawing stand below each other in the order of the branches, an inner node beside the middle of
its children: so boxes of one column never overlap, and edges do not cross.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

# Pixels
WIDTH: Final = 212
HEIGHT: Final = 54
GAP: Final = 10
LEVEL: Final = 268
"""From the left edge of a column to that of the next."""
MARGIN: Final = 8


class Place(NamedTuple):
    """Upper left corner of a node's box."""

    x: float
    y: float


class Layout(NamedTuple):
    """Places by node, and the size of the drawing."""

    places: dict[int, Place]
    width: float
    height: float


def layout(shown: Sequence[int], children: Mapping[int, Sequence[int]]) -> Layout:
    """Return the places of nodes.

    shown: nodes, depth first. children: the drawn children of a node; a node without an entry has none.
    """
    depth: dict[int, int] = {}
    for node in shown:
        for child in children.get(node, ()):
            depth[child] = depth.get(node, 0) + 1
    places: dict[int, Place] = {}
    row = 0
    for node in shown:
        if not children.get(node):
            places[node] = Place(MARGIN + depth.get(node, 0) * LEVEL, MARGIN + row * (HEIGHT + GAP))
            row += 1
    for node in reversed(shown):  # every child has its place before its parent
        if below := children.get(node):
            middle = (places[below[0]].y + places[below[-1]].y) / 2
            places[node] = Place(MARGIN + depth.get(node, 0) * LEVEL, middle)
    right = max((place.x for place in places.values()), default=0.0)
    return Layout(places, right + WIDTH + 40 + MARGIN, 2 * MARGIN + max(1, row) * (HEIGHT + GAP) - GAP)
