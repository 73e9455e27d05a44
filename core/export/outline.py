"""Outline: the nodes of a model with tests, masses and votes, by names of the schema; all exports use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.model.model import Model
from core.schema.schema import Schema
from core.tree.conditions import BESIDE
from core.tree.outline import Outline


def outline(model: Model, depth: int | None = None) -> list[Outline]:
    """Return the nodes of the tree that answers, parents first, children from left to right.

    An alternate tree of an adaptive tree is the last child of the node that it may replace. Nodes below
    ``depth`` are left out; nodes at ``depth`` have the number of leaves below them.
    """
    return list(model.plan.blocks.outline(model, model.first, depth))


def vote_of(schema: Schema, node: Outline) -> str:
    """Return the class that a node votes for, and its masses."""
    if node.majority is None:
        return "(nothing seen)"
    seen = ", ".join(f"{mass:.4g}" for mass in node.masses) if any(node.masses) else "nothing seen"
    return f"{schema.classes[node.majority]} ({seen})"


def answering(nodes: Sequence[Outline]) -> list[Outline]:
    """Return the nodes that are not in alternate trees; nodes: parents first."""
    beside: set[int] = set()
    for node in nodes:
        is_root = node.branch is not None and node.branch.operator == BESIDE
        if is_root or node.parent in beside:
            beside.add(node.number)
    return [
        replace(node, children=tuple(child for child in node.children if child not in beside))
        for node in nodes
        if node.number not in beside
    ]
