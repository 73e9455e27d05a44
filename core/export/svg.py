"""Tree as an SVG drawing, laid out without an external program.

Leaves stand side by side in the order of the branches, an inner node over the middle of its children. The
condition of a node stands in its box, above the classes; a bar shows their shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from core.export.outline import outline, vote_of
from core.model.model import Model
from core.schema.schema import Schema
from core.tree.outline import Outline

# Pixels
WIDTH: Final = 176
HEIGHT: Final = 62
GAP: Final = 14
LEVEL: Final = 104
MARGIN: Final = 12
LETTERS: Final = 26
"""Letters of a line in a box; longer lines are cut, and complete in the tooltip."""

# Okabe and Ito's colours, which can be distinguished with any kind of colour vision.
COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")


def to_svg(model: Model, depth: int | None = None) -> str:
    """Return the tree that answers as an SVG document; below ``depth`` subtrees are left out."""
    nodes = outline(model, depth)
    place = {number: (MARGIN + x, MARGIN + y) for number, (x, y) in layout(nodes).items()}
    width = max(x for x, _ in place.values()) + WIDTH + MARGIN
    height = max(y for _, y in place.values()) + HEIGHT + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width:g}" height="{height:g}" fill="white"/>',
    ]
    for node in nodes:
        lines.extend(_edges(node, place))
    for node in nodes:
        lines.extend(_box(model.schema, node, *place[node.number]))
    return "\n".join([*lines, "</svg>"]) + "\n"


def layout(nodes: list[Outline]) -> dict[int, tuple[float, float]]:
    """Return the upper left corner of each node's box, in pixels."""
    place: dict[int, tuple[float, float]] = {}
    column = 0
    for node in nodes:
        if not node.children:
            place[node.number] = (column * (WIDTH + GAP), node.depth * LEVEL)
            column += 1
    # Parents come before their children, so that backwards every child has its place.
    for node in reversed(nodes):
        if node.children:
            middle = (place[node.children[0]][0] + place[node.children[-1]][0]) / 2
            place[node.number] = (middle, node.depth * LEVEL)
    return place


def _edges(node: Outline, place: dict[int, tuple[float, float]]) -> Iterator[str]:
    x, y = place[node.number]
    for child in node.children:
        to_x, to_y = place[child]
        half = (LEVEL - HEIGHT) / 2
        yield (
            f'<path d="M{x + WIDTH / 2:g} {y + HEIGHT:g} v{half:g} H{to_x + WIDTH / 2:g} V{to_y:g}"'
            ' fill="none" stroke="#999"/>'
        )


def _box(schema: Schema, node: Outline, x: float, y: float) -> Iterator[str]:
    title = str(node.branch) if node.branch else "all"
    if node.leaves_below:
        below = f"… {node.leaves_below:,} leaves"
    elif node.majority is not None and any(node.masses):
        share = node.masses[node.majority] / sum(node.masses)
        below = f"{schema.classes[node.majority]} {share:.1%} of {sum(node.masses):,.4g}"
    else:
        below = vote_of(schema, node)
    fill = "#ffffff" if node.children else "#f4f4f4"
    classes = ", ".join(f"{name} {mass:,.4g}" for name, mass in zip(schema.classes, node.masses, strict=True))
    yield "<g>"
    yield f"<title>{_shown(f'node {node.number}: {title}; {classes}')}</title>"
    yield f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="{fill}" stroke="#555"/>'
    middle = x + WIDTH / 2
    yield f'<text x="{middle:g}" y="{y + 18:g}" text-anchor="middle" font-weight="bold">{_cut(title)}</text>'
    yield f'<text x="{middle:g}" y="{y + 35:g}" text-anchor="middle">{_cut(below)}</text>'
    yield from _bar(node.masses, x + 8, y + HEIGHT - 16)
    yield "</g>"


def _bar(masses: tuple[float, ...], x: float, y: float) -> Iterator[str]:
    total, room = sum(masses), WIDTH - 16
    for label, mass in enumerate(masses):
        width = room * mass / total if total else 0.0
        if width > 0.0:
            colour = COLOURS[label % len(COLOURS)]
            yield f'<rect x="{x:.6g}" y="{y:g}" width="{width:.6g}" height="8" fill="{colour}"/>'
            x += width


def _cut(text: str) -> str:
    return _shown(text if len(text) <= LETTERS else text[: LETTERS - 1] + "…")


def _shown(text: str) -> str:
    """Return a text without control codes, for which XML has no characters."""
    return escape("".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text))
