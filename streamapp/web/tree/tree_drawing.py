"""Tree drawing: the drawn nodes of a tree as SVG.

A node has its condition, a bar that is wider the more records came through it, with the shares of the
classes, and the class that it votes for. All texts are escaped.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamapp.web.charts.drawing import LINES_MAX, colour
from streamapp.web.formatting import cut, number, share
from streamapp.web.tree.folding import Folding
from streamapp.web.tree.layout import HEIGHT, LEVEL, WIDTH, Layout, layout
from streamapp.web.tree.outline_rows import OutlineRows, Row

LETTERS: Final = 29
"""Characters of a line in a box; the whole text is in the node's name for assistive technology."""
EDGE_MIN, EDGE_MAX = 1.0, 10.0
BAR_MAX: Final = WIDTH - 20
BAR_MIN: Final = 2.0


@dataclass(frozen=True, slots=True)
class Highlights:
    """Nodes that a person looks at."""

    selected: int | None = None
    path: Collection[int] = ()
    """The path of a record."""
    matches: Collection[int] = ()
    """Nodes that a search found."""
    drawing: int = 0
    """Number of the drawing, by which a script finds out that it has come."""


def tree_svg(
    tree: OutlineRows, classes: Sequence[str], folding: Folding, highlights: Highlights | None = None
) -> str:
    """Return the drawing of the unfolded nodes; "": the tree has no node."""
    shown = folding.shown()
    if not shown:
        return ""
    looked_at = highlights or Highlights()
    children = {node: tree.by_number[node]["children"] for node in shown if folding.is_open(node)}
    drawn = layout(shown, children)
    most = tree.rows[0]["records"] or 1.0
    focus = looked_at.selected if looked_at.selected in drawn.places else shown[0]
    parts = [
        f'<svg role="tree" aria-label="Tree" xmlns="http://www.w3.org/2000/svg" class="grove-tree-drawing" '
        f'data-drawing="{looked_at.drawing}" '
        f'viewBox="0 0 {drawn.width:g} {drawn.height:g}" style="--grove-width:{drawn.width:g}px">',
        '<g aria-hidden="true">',
        *_edges(tree, children, drawn, looked_at, most),
        "</g>",
    ]
    for node in shown:
        row = tree.by_number[node]
        parts += _node(row, classes, drawn, looked_at, most, _State(tree, folding, node == focus))
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True, slots=True)
class _State:
    tree: OutlineRows
    folding: Folding
    has_focus: bool


def _edges(
    tree: OutlineRows,
    children: dict[int, Any],
    drawn: Layout,
    looked_at: Highlights,
    most: float,
) -> Iterator[str]:
    for node, below in children.items():
        start = drawn.places[node]
        from_x, from_y = start.x + WIDTH, start.y + HEIGHT / 2
        for child in below:
            end = drawn.places[child]
            middle = from_x + (LEVEL - WIDTH) / 2 + 6
            width = EDGE_MIN + (EDGE_MAX - EDGE_MIN) * min(1.0, tree.by_number[child]["records"] / most)
            name = "grove-edge grove-on-path" if child in looked_at.path else "grove-edge"
            yield (
                f'<path class="{name}" stroke-width="{width:.1f}" d="M{from_x:g} {from_y:g}'
                f'H{middle:g}V{end.y + HEIGHT / 2:g}H{end.x:g}"/>'
            )


def _node(
    row: Row, classes: Sequence[str], drawn: Layout, looked_at: Highlights, most: float, state: _State
) -> Iterator[str]:
    node, (x, y) = row["node"], drawn.places[row["node"]]
    names = ["grove-node"]
    names += ["grove-on-path"] if node in looked_at.path else []
    names += ["grove-match"] if node in looked_at.matches else []
    is_open = state.folding.is_open(node)
    expanded = f' aria-expanded="{str(is_open).lower()}"' if row["children"] else ""
    selected = str(node == looked_at.selected).lower()
    yield (
        f'<g role="treeitem" class="{" ".join(names)}" data-node="{node}" aria-level="{row["depth"] + 1}" '
        f'aria-selected="{selected}"{expanded} tabindex="{0 if state.has_focus else -1}" '
        f'aria-label="{_attribute(spoken(row, classes, state.tree, looked_at))}">'
    )
    yield f'<rect class="grove-box" x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
    yield f'<text class="grove-condition" x="{x + 10:g}" y="{y + 18:g}">{_text(condition(row))}</text>'
    yield from _bar(row, x + 10, y + 25, most)
    yield f'<text x="{x + 10:g}" y="{y + 47:g}">{_text(summary(row, classes))}</text>'
    if row["children"]:
        yield from _marker(x + WIDTH, y + HEIGHT / 2, 0 if is_open else state.tree.below[node])
    yield "</g>"


def _marker(x: float, y: float, hidden: int) -> Iterator[str]:
    """Draw the sign at which a node is folded and unfolded, and the number of nodes that it hides."""
    yield f'<circle class="grove-fold" data-fold="1" cx="{x:g}" cy="{y:g}" r="11"/>'
    sign = "M-5 0H5M0 -5V5" if hidden else "M-5 0H5"
    yield f'<path class="grove-sign" transform="translate({x:g} {y:g})" d="{sign}"/>'
    if hidden:
        yield f'<text class="grove-hidden" x="{x + 15:g}" y="{y + 4:g}">{hidden:,}</text>'


def _bar(row: Row, x: float, y: float, most: float) -> Iterator[str]:
    """Draw the bar of a node's records, with the shares of the classes in it."""
    whole = BAR_MIN + (BAR_MAX - BAR_MIN) * min(1.0, max(0.0, row["records"] / most))
    total = sum(row["masses"])
    if not total:
        yield f'<rect class="grove-nothing" x="{x:g}" y="{y:g}" width="{whole:.1f}" height="8"/>'
        return
    shown = row["masses"][: LINES_MAX - 1]
    rest = max(0.0, total - sum(shown))
    for code, mass in enumerate([*shown, rest]):
        width = whole * mass / total
        if width >= 0.05:
            yield f'<rect x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="8" fill="{colour(code)}"/>'
            x += width


def condition(row: Row) -> str:
    """Return the condition of the branch to a node, shortened."""
    return cut(row["branch"] or "all records", LETTERS)


def summary(row: Row, classes: Sequence[str]) -> str:
    """Return the number of records of a node, and the class that it votes for, shortened."""
    records = number(round(row["records"]))
    if row["leaves_below"]:
        return cut(f"{records} · … {row['leaves_below']:,} leaves", LETTERS)
    if row["majority"] is None:
        return f"{records} · nothing learned"
    name = cut(classes[row["majority"]], 14)
    return f"{records} · {name}" + ("" if row["purity"] is None else f" {share(row['purity'])}")


def spoken(row: Row, classes: Sequence[str], tree: OutlineRows, looked_at: Highlights) -> str:
    """Return the name of a node for assistive technology."""
    parts = [cut(row["branch"] or "all records", 120), f"{number(round(row['records']))} records"]
    if row["majority"] is not None:
        purity = "" if row["purity"] is None else f" {share(row['purity'])}"
        parts.append(f"{cut(classes[row['majority']], 40)}{purity}")
    if row["children"]:
        parts.append(f"{tree.below[row['node']]:,} nodes below")
    if row["node"] in looked_at.path:
        parts.append("on the path of the record")
    if row["node"] in looked_at.matches:
        parts.append("found by the search")
    return ", ".join(parts)


def _text(text: str) -> str:
    return html.escape(text, quote=False)


def _attribute(text: str) -> str:
    return html.escape(text)
