"""Further invariants of a tree grown from records, checked slowly from outside (core/model/validate.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from core.layout.tree import ABSENT, LEAF, MULTIWAY
from core.tree import quirks
from core.tree.views import TreeView


def problems(model: Any, tree: TreeView) -> Iterator[str]:
    """Yield every broken invariant of a tree as a sentence."""
    yield from _repeated_multiway(model, tree)
    yield from _mass_problems(model, tree)


def _repeated_multiway(model: Any, tree: TreeView) -> Iterator[str]:
    """Yield the first node that tests an attribute which a multiway test above it has used up.

    Each node is linked to the nearest multiway test above it, so that a path to the root visits each
    attribute once.
    """
    if model.plan.record.has(quirks.TESTS_AGAIN):
        return
    nodes = tree.nodes[: tree.block.nodes]
    kinds, attributes, parents = nodes.kind.tolist(), nodes.attribute.tolist(), nodes.parent.tolist()
    above = [-1] * len(kinds)
    for number, parent in enumerate(parents):
        if parent >= 0:
            above[number] = parent if kinds[parent] == MULTIWAY else above[parent]
        test = above[number] if kinds[number] not in (LEAF, ABSENT) else -1
        while test >= 0:
            if attributes[test] == attributes[number]:
                yield f"node {number} must not test the attribute of a multiway test above it"
                return
            test = above[test]


def _mass_problems(model: Any, tree: TreeView) -> Iterator[str]:
    records = tree.nodes[: tree.block.nodes]
    kinds = records.kind
    # Nodes with leaf records: leaves, and inner nodes that are revised.
    nodes = np.flatnonzero((kinds == LEAF) | ((kinds != ABSENT) & (tree.shape.revision > 0)))
    nodes = nodes[records.slot[nodes] >= 0]  # leaves without a leaf record are inactive
    slots = records.slot[nodes]
    seen, masses = tree.seen[slots], tree.masses[nodes]
    observed = tree.leaf_records.observed[slots]
    for i in np.flatnonzero(~np.isclose(seen.sum(axis=1), observed, rtol=1e-9, atol=0.0)):
        yield f"leaf {nodes[i]}: seen={seen[i].tolist()} must add up to {observed[i]}"
    inherits = not (tree.shape.revision and model.plan.record.has(quirks.NOTHING_INHERITED))
    below = (masses < seen * (1.0 - 1e-9)) & inherits
    for i in np.flatnonzero((below | (seen < 0.0)).any(axis=1)):
        yield f"leaf {nodes[i]}: masses={masses[i].tolist()} must be at least seen={seen[i].tolist()}"
    schedule = model.spec.learner.schedule
    for node, slot in zip(nodes.tolist(), slots.tolist(), strict=True):
        yield from (f"leaf {node}: {problem}" for problem in schedule.problems(model, tree, slot))
    if not np.isfinite(tree.masses).all() or (tree.masses < 0.0).any():
        yield "class masses must be finite and not negative"
