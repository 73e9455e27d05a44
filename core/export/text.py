"""A tree as text, one line a node."""

from __future__ import annotations

from core.export.outline import Outline, outline, verdict
from core.features import Schema
from core.model import Model


def to_text(model: Model, depth: int | None = None) -> str:
    """Return the tree that answers: tests indented by depth, leaves with their class masses.

    One leaf reads ``petal length <= 2.45: setosa (50, 0, 1)``: the class its majority votes for, and the
    masses. Below ``depth`` subtrees are left out.
    """
    return "\n".join(_line(model.schema, node) for node in outline(model, depth)) + "\n"


def _line(schema: Schema, node: Outline) -> str:
    indent = "  " * node.depth
    if node.is_leaf:
        condition = f"{node.branch}: " if node.branch else ""
        return f"{indent}{condition}{verdict(schema, node)}"
    hidden = f": … {node.leaves_below:,} leaves" if node.leaves_below else ""
    return f"{indent}{node.branch or 'all'}{hidden}"
