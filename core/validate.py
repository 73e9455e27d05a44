"""Invariants of a model's buffer, checked from the outside, slowly (tests, ``grove`` diagnostics)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from core import arena
from core.errors import GroveError
from core.model import Model
from core.tree import layout as at
from core.tree.layout import TreeView


def check(model: Model) -> None:
    """Raise GroveError with everything that is wrong."""
    found = list(problems(model))
    if found:
        raise GroveError("; ".join(found))


def problems(model: Model) -> Iterator[str]:
    """Yield every broken invariant as a sentence."""
    yield from _header_problems(model)
    yield from _evaluation_problems(model)
    for name, block in zip(("main", "background"), arena.blocks(model.ints), strict=False):
        tree = arena.tree_view(model.plan, model.ints, block.source)
        for look in (_node_problems, _repeated_multiway, _slot_problems, _mass_problems):
            found = list(look(model, tree))
            yield from (f"{name} tree: {problem}" for problem in found)
            if found:
                break  # what comes after walks where this one fell


def _header_problems(model: Model) -> Iterator[str]:
    ints = model.ints
    if ints[at.MODEL_WORDS] != len(ints):
        yield f"words={ints[at.MODEL_WORDS]} must be {len(ints)}"
    closed = ints[at.MODEL_REPLIES] + ints[at.MODEL_DECLINED] + ints[at.MODEL_EXPIRED]
    if not closed <= ints[at.MODEL_REQUESTS] <= ints[at.MODEL_RECORDS]:
        yield "closed requests, requests and records must not decrease in this order"
    if not 0 <= ints[at.MODEL_RESERVED] <= ints[at.MODEL_REQUESTS]:
        yield "requests for the evaluation must be among the requests"
    if not model.schema.declared_classes <= ints[at.MODEL_CLASSES] <= model.schema.n_classes:
        yield f"classes={ints[at.MODEL_CLASSES]} must be from the declared to the known ones"
    if len({block.source for block in arena.blocks(ints)}) != len(arena.blocks(ints)):
        yield "main and background tree must be two"


def _evaluation_problems(model: Model) -> Iterator[str]:
    plan, ints = model.plan, model.ints
    k, window = model.schema.n_classes, int(plan.ints[at.PLAN_WINDOW])
    start = int(plan.ints[at.PLAN_EVALUATION])
    rows = ints[start + at.EVALUATION_FIELDS :][: at.EVALUATION_ROWS * k].reshape(at.EVALUATION_ROWS, k)
    judged = int(ints[start + at.EVALUATION_COUNT])
    for offset, n in ((0, judged), (at.EVALUATION_WINDOW, min(judged, window))):
        actual, predicted, hit = rows[offset : offset + at.EVALUATION_WINDOW]
        if actual.sum() != n or predicted.sum() != n or (hit > np.minimum(actual, predicted)).any():
            yield f"evaluation counts {rows.tolist()} must add up to {n} judged predictions"
    bits = int(plan.ints[at.PLAN_CODE_BITS])
    position = np.arange(min(judged, window))
    words = ints[start + at.EVALUATION_FIELDS + at.EVALUATION_ROWS * k :]
    pairs = words[position // (32 // bits)] >> (2 * bits * (position % (32 // bits)))
    actual = pairs & ((1 << bits) - 1)
    predicted = (pairs >> bits) & ((1 << bits) - 1)
    recount = [np.bincount(codes, minlength=k) for codes in (actual, predicted, actual[actual == predicted])]
    if not np.array_equal(recount, rows[at.EVALUATION_WINDOW :]):
        yield "window counts must be those of the codes in the window"


def _node_problems(model: Model, tree: TreeView) -> Iterator[str]:
    n = int(tree.header[at.TREE_NODES])
    nodes = tree.node_ints[:n]
    kinds = nodes[:, at.NODE_KIND]
    if nodes[0, at.NODE_PARENT] != -1 or nodes[0, at.NODE_DEPTH] != 0:
        yield "node 0 must be the root"
    children: list[int] = []
    for node in np.flatnonzero((kinds != at.LEAF) & (kinds != at.ABSENT)):
        first, count = nodes[node, at.NODE_CHILD], nodes[node, at.NODE_CHILDREN]
        children += range(first, first + count)
        if first <= node or first + count > n:
            yield f"children of node {node} must lie behind it, inside the tree"
            continue
        below = nodes[first : first + count]
        depth = nodes[node, at.NODE_DEPTH] + 1
        if (below[:, at.NODE_PARENT] != node).any() or (below[:, at.NODE_DEPTH] != depth).any():
            yield f"children of node {node} must point back to it, one deeper"
        if (nodes[node, at.NODE_SLOT] != -1) != (tree.shape.revision > 0):
            yield f"inner node {node} must have a leaf record if and only if splits are revised"
    if sorted(children) != list(range(1, n)):
        yield "every node but the root must be the child of one node"
    ends = np.flatnonzero((kinds == at.LEAF) | (kinds == at.ABSENT))
    if (nodes[ends, at.NODE_CHILD] != ends).any() or (tree.node_floats[ends, at.NODE_VALUE] != np.inf).any():
        yield "leaves and absent branches must lead to themselves"
    live = kinds != at.ABSENT
    if tree.header[at.TREE_LEAVES] != np.count_nonzero(kinds == at.LEAF):
        yield f"leaves={tree.header[at.TREE_LEAVES]} must be {np.count_nonzero(kinds == at.LEAF)}"
    if tree.header[at.TREE_SPLITS] != np.count_nonzero(live & (kinds != at.LEAF)):
        yield "splits must be the number of inner nodes"
    if n > 0 and tree.header[at.TREE_DEPTH] != nodes[:, at.NODE_DEPTH].max():
        yield "depth must be that of the deepest node"
    unused = tree.node_ints[n:]
    if unused.size and (unused != _empty_node(tree)).any():
        yield "unused node records must be empty"


def _empty_node(tree: TreeView) -> at.Ints:
    record = np.zeros(tree.shape.node_stride, dtype=np.int64)
    record[[at.NODE_PARENT, at.NODE_SLOT]] = -1
    return record


def _repeated_multiway(model: Model, tree: TreeView) -> Iterator[str]:
    if model.plan.ints[at.PLAN_MOA]:
        return
    nodes = tree.node_ints
    for node in range(int(tree.header[at.TREE_NODES])):
        if nodes[node, at.NODE_KIND] in (at.LEAF, at.ABSENT):
            continue
        parent = int(nodes[node, at.NODE_PARENT])
        while parent >= 0:
            same = nodes[parent, at.NODE_ATTRIBUTE] == nodes[node, at.NODE_ATTRIBUTE]
            if same and nodes[parent, at.NODE_KIND] == at.MULTIWAY:
                yield f"node {node} must not test what a multiway test above it has used up"
            parent = int(nodes[parent, at.NODE_PARENT])


def _learning_nodes(tree: TreeView) -> at.Ints:
    """Return the numbers of the nodes that have leaf records: leaves, and inner nodes that are revised."""
    kinds = tree.node_ints[: int(tree.header[at.TREE_NODES]), at.NODE_KIND]
    return np.flatnonzero((kinds == at.LEAF) | ((kinds != at.ABSENT) & (tree.shape.revision > 0)))


def _slot_problems(model: Model, tree: TreeView) -> Iterator[str]:
    _n, used = int(tree.header[at.TREE_NODES]), int(tree.header[at.TREE_SLOTS])
    learners = _learning_nodes(tree)
    taken = tree.node_ints[learners, at.NODE_SLOT]
    if len(set(taken.tolist())) != len(taken) or (taken < 0).any() or (taken >= used).any():
        yield "leaves must have leaf records of their own"
        return
    if (tree.leaf_ints[taken, at.LEAF_NODE] != learners).any():
        yield "leaf records must point back to their leaves"
    free: list[int] = []
    slot = int(tree.header[at.TREE_FREE])
    while slot >= 0 and len(free) <= used:
        free.append(slot)
        slot = int(tree.leaf_ints[slot, at.LEAF_NODE])
    if sorted([*free, *taken.tolist()]) != list(range(used)):
        yield "leaf records in use must be those of leaves and the free ones, each once"
    empty = arena.empty_leaf(model.plan)
    for slot in [*free, *range(used, tree.shape.slots)]:
        if (tree.leaf_ints[slot, 1:] != empty[1:]).any():
            yield f"leaf record {slot} is free and must be empty"


def _mass_problems(model: Model, tree: TreeView) -> Iterator[str]:
    inherits = model.spec.learner.compat != "imac" or not tree.shape.revision
    for node in _learning_nodes(tree):
        slot = int(tree.node_ints[node, at.NODE_SLOT])
        seen, masses = tree.seen[slot], tree.masses[node]
        observed = tree.leaf_floats[slot, at.LEAF_OBSERVED]
        if not np.isclose(seen.sum(), observed, rtol=1e-9, atol=0.0):
            yield f"leaf {node}: seen={seen.tolist()} must add up to {observed}"
        if (seen < 0.0).any() or (inherits and (masses < seen * (1.0 - 1e-9)).any()):
            yield f"leaf {node}: masses={masses.tolist()} must be at least seen={seen.tolist()}"
        yield from (f"leaf {node}: {p}" for p in model.spec.learner.schedule.problems(model, tree, slot))
    if not np.isfinite(tree.masses).all() or (tree.masses < 0.0).any():
        yield "class masses must be finite and not negative"
