"""Tree as text, one line a node."""

from __future__ import annotations

from core.export.outline import outline, vote_of
from core.model.model import Model
from core.schema.schema import Schema
from core.tree.outline import Outline


def to_text(model: Model, depth: int | None = None) -> str:
    """Return the tree that answers: tests indented by depth, leaves with their class masses.

    A leaf is printed as ``petal length <= 2.45: setosa (50, 0, 1)``: the class that its majority votes for,
    and the masses. Below ``depth`` subtrees are left out.
    """
    return "\n".join(printable(_line(model.schema, node)) for node in outline(model, depth)) + "\n"


def _line(schema: Schema, node: Outline) -> str:
    indent = "  " * node.depth
    if node.is_leaf:
        condition = f"{node.branch}: " if node.branch else ""
        return f"{indent}{condition}{vote_of(schema, node)}"
    hidden = f": … {node.leaves_below:,} leaves" if node.leaves_below else ""
    return f"{indent}{node.branch or 'all'}{hidden}"


def printable(text: str) -> str:
    """Return a line with escaped control characters: names come from senders of records."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
