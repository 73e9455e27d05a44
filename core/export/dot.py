"""Tree for Graphviz."""

from __future__ import annotations

import json

from core.export.outline import outline, vote_of
from core.model.model import Model


def to_dot(model: Model, depth: int | None = None) -> str:
    """Return the tree that answers as a directed graph for Graphviz; ``dot -Tsvg`` draws it."""
    lines = [
        "digraph tree {",
        '  node [shape=box, fontname="sans-serif"];',
        '  edge [fontname="sans-serif"];',
    ]
    for node in outline(model, depth):
        if node.children:
            label, shape = f"{node.routed:,.4g} records", "ellipse"
        elif node.leaves_below:
            label, shape = f"… {node.leaves_below:,} leaves", "folder"
        else:
            label, shape = vote_of(model.schema, node), "box"
        lines.append(f"  n{node.number} [label={_quoted(label)}, shape={shape}];")
        if node.branch:
            lines.append(f"  n{node.parent} -> n{node.number} [label={_quoted(str(node.branch))}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    """Return a quoted string for Graphviz: quotes and backslashes are escaped as in JSON."""
    return json.dumps(text, ensure_ascii=False)
