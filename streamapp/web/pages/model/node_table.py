"""Node table: the nodes of a tree as a table, for people who do not see the drawing."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Final

from streamapp.web.formatting import cut, number, share
from streamapp.web.tree.outline_rows import Row, split_in_words

NODES_LISTED: Final = 300
HEAD: Final = {
    "Node": True,
    "Condition": False,
    "Records": True,
    "Before its split": True,
    "Since then": True,
    "Votes for": False,
    "Purity": True,
    "Split": False,
}
"""Titles of the columns, and whether they are numbers."""


def nodes_table(nodes: Sequence[Row], classes: Sequence[str], splits: Mapping[int, Row]) -> str:
    """Return the first nodes as an HTML table; its texts are escaped."""
    head = "".join(f'<th scope="col"{_place(is_number)}>{title}</th>' for title, is_number in HEAD.items())
    body = "".join(
        f"<tr>{''.join(f'<td{_place(is_number)}>{html.escape(text)}</td>' for text, is_number in cells)}</tr>"
        for cells in (
            zip(_cells(node, classes, splits), HEAD.values(), strict=True) for node in nodes[:NODES_LISTED]
        )
    )
    n_more = len(nodes) - NODES_LISTED
    more = f"<caption>and {n_more:,} more nodes</caption>" if n_more > 0 else ""
    return (
        '<div class="grove-scroll grove-values" tabindex="0" role="region" aria-label="Nodes">'
        f'<table class="grove-table">{more}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _place(is_number: bool) -> str:
    return ' class="grove-number"' if is_number else ""


def _cells(node: Row, classes: Sequence[str], splits: Mapping[int, Row]) -> list[str]:
    inner = bool(node["children"])
    return [
        str(node["node"]),
        f"{'· ' * min(node['depth'], 20)}{cut(node['branch'] or 'all records', 80)}",
        number(round(node["records"], 2)),
        number(round(node["own"], 2)) if inner else "",
        number(round(node["records"] - node["own"], 2)) if inner else "",
        "nothing learned" if node["majority"] is None else cut(classes[node["majority"]]),
        share(node["purity"]),
        split_in_words(splits.get(node["node"])) if inner else "",
    ]
