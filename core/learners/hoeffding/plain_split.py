"""Plain splits: a leaf becomes an inner node without leaving compiled code.

A split is plain if the block has room for it, no cap is near, and new leaves begin only with class masses and
the weight at which their first attempt is due. All other splits are made by
``core/learners/hoeffding/growth/splitting.py``, which writes the same bytes for a plain split.
"""

from __future__ import annotations

from typing import Any, Final

from core.kernels.jit import FLOATS, kernel, outlined, words_at
from core.learners.hoeffding import ranking
from core.learners.hoeffding.branch_masses import branches_of, divide_here
from core.tree import layout as at
from core.tree.byoffset.children import connect_here
from core.tree.byoffset.routing import leaf_at, node_at

# The words that describe a split (float64[SPLIT_WORDS + class])
NODE: Final = 0  # number of the node
ATTRIBUTE: Final = 1
TEST: Final = 2
VALUE: Final = 3
BEST: Final = 4  # merits of the best and of the second best test
SECOND: Final = 5
EPSILON: Final = 6
EVIDENCE: Final = 7
OUTCOME: Final = 8  # GAP, TIE (core/learners/hoeffding/split_decision.py)
DEPTH: Final = 9
CLASSES: Final = 10  # number of class masses that follow, which the node had before
SPLIT_WORDS: Final = 11


@kernel(f"boolean(int64, int64, int64, int64, float64[::1], int64, {FLOATS})")
def split_leaf(plan_address: int, address: int, t: int, node: int, decided, outcome: int, out) -> bool:
    """Install the best test of a ranking (decided: float64[RANKING_WORDS]) at a leaf.

    Writes the words that describe the split to ``out`` (float64[SPLIT_WORDS + class]). t and node are the
    first words of the tree and of the leaf's node record. Returns False, and changes nothing, if the split is
    not plain.
    """
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    attribute, test = int(decided[ranking.BEST_ATTRIBUTE]), int(decided[ranking.BEST_TEST])
    if plan[at.PLAN_PLAIN_SPLITS] == 0 or attribute < 0:
        return False
    branches = branches_of(plan, ints, attribute, test)
    if not has_room(plan, ints, t, branches):
        return False
    value, number = decided[ranking.BEST_VALUE], (node - t - at.TREE_HEADER) // ints[t + at.TREE_NODE_STRIDE]
    masses = divide_here(plan_address, address, t, number, attribute, test, value)
    out[NODE], out[ATTRIBUTE], out[TEST], out[VALUE] = number, attribute, test, value
    out[BEST], out[SECOND] = decided[ranking.BEST_MERIT], decided[ranking.SECOND_MERIT]
    out[EPSILON], out[EVIDENCE] = decided[ranking.EPSILON], decided[ranking.EVIDENCE]
    out[OUTCOME], out[DEPTH], out[CLASSES] = outcome, ints[node + at.NODE_DEPTH], ints[at.MODEL_CLASSES]
    for c in range(ints[at.MODEL_CLASSES]):
        out[SPLIT_WORDS + c] = floats[node + at.NODE_FIELDS + c]
    free_slot(plan, ints, t, ints[node + at.NODE_SLOT])
    ints[node + at.NODE_SLOT] = -1
    connect_here(plan_address, address, t, number, attribute, test, value, masses, True)
    first = ints[node + at.NODE_CHILD]
    for child in range(first, first + branches):
        slot = ints[node_at(ints, t, child) + at.NODE_SLOT]
        floats[leaf_at(ints, t, slot) + at.LEAF_NEXT] = params[at.PLAN_FIRST_ATTEMPT]
    return True


split_leaf_here: Any = outlined(split_leaf)
"""``split_leaf`` for other kernels: a call, not inlined."""


@kernel
def has_room(plan, ints, t: int, branches: int) -> bool:
    """Return whether a leaf's children fit into the present room of the block, and surely into the caps."""
    nodes, leaves = ints[t + at.TREE_NODES] + branches, ints[t + at.TREE_LEAVES] - 1 + branches
    if nodes > ints[t + at.TREE_NODE_CAPACITY] or leaves > ints[t + at.TREE_SLOT_CAPACITY]:
        return False
    words = nodes * ints[t + at.TREE_NODE_STRIDE] + leaves * ints[t + at.TREE_LEAF_STRIDE]
    return leaves <= plan[at.PLAN_MAX_LEAVES] and at.TREE_HEADER + words <= plan[at.PLAN_SURE_WORDS]


@kernel
def free_slot(plan, ints, t: int, slot: int) -> None:
    """Clear a leaf record and chain it to the free records."""
    blank, _ = words_at(plan[at.PLAN_BLANK_LEAF])
    leaf = leaf_at(ints, t, slot)
    for word in range(ints[t + at.TREE_LEAF_STRIDE]):
        ints[leaf + word] = blank[word]
    ints[leaf + at.LEAF_NODE] = ints[t + at.TREE_FREE]
    ints[t + at.TREE_FREE] = slot
