"""Blocks of boosted trees: how they are laid out, copied, grown and read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from core.events import Event, GrowthStopped
from core.kernels import jit
from core.kernels.jit import kernel, start_of, words_at
from core.kernels.records import row_type, rows
from core.layout.learning import GROW_FIRST
from core.layout.model import Floats, Ints, ModelHeader
from core.layout.plan import PlanRecord, plan_at
from core.layout.tree import NO_NODE
from core.learners.arenas import FIRST, SECOND, ArenaLayout
from core.learners.protocol import BlockSummary, HasBlocks, Room
from core.learners.sgbt.boosted_paths import MEMBER, cut_at, node_rows, outline_of, path_of
from core.learners.sgbt.layout import (
    ENTRY_FIELDS,
    FREED,
    HEADER,
    LEAF_FIELDS,
    MASK_BITS,
    NODE_WORDS,
    SUMS,
    Boosting,
    BoostPlaces,
    TreeEntry,
    committees,
    sketch_words,
)
from core.learners.sgbt.residuals import SPLITS
from core.learners.sgbt.scoring import score_here
from core.schema.dimensions import Dimensions, values_carried
from core.schema.schema import Schema
from core.tree.conditions import Branch
from core.tree.outline import Outline

NODES, LEAVES = FIRST, SECOND


@kernel("int64(int64, int64, int64, float64[::1], float64[::1])", alone=True)
def score(plan_address: int, address: int, t: int, x, shares) -> int:
    """Write the class shares of the trees at word t for a record; return the class."""
    ints, floats = words_at(address)
    return score_here(plan_at(plan_address), Boosting(ints, floats, t), start_of(x), start_of(shares))


def boosting_at(ints: Ints, t: int) -> Boosting:
    """Return the boosted trees at word t of a model's words."""
    return Boosting(ints, ints.view(np.float64), t)


class BoostLayout(ArenaLayout):
    """The blocks of boosted trees for records of certain dimensions; room: (nodes, leaves, reckoned)."""

    header: ClassVar[Any] = Boosting
    capacities: ClassVar[tuple[str, str]] = ("node_capacity", "leaf_capacity")
    used: ClassVar[tuple[str, str]] = ("nodes", "leaves")
    learned_size: ClassVar[str] = "learned_leaf"
    place_name: ClassVar[str] = "node"
    block_names: ClassVar[tuple[str, str]] = ("main trees", "background trees")

    def __init__(self, learner: Any, dims: Dimensions) -> None:
        """Take the learner, whose parameters define the number of trees and the thresholds of a leaf."""
        super().__init__(learner, dims)
        self.members: int = learner.members
        self.bins: int = learner.bins
        self.entry_words = ENTRY_FIELDS + -(-dims.attributes // MASK_BITS)
        self.weights_at = HEADER
        self.entries_at = HEADER + dims.classes
        self.nodes_at = self.fixed_words(dims.classes)
        self.values_at = LEAF_FIELDS + len(dims.numeric) * sketch_words(self.bins)
        self.leaf_words = self.varying_words(dims.values)
        self.offsets = tuple(getattr(self, name) for name in BoostPlaces.FIELDS)

    def fixed_words(self, classes: int) -> int:
        """Return where nodes begin in a block with this number of classes."""
        return HEADER + classes + self.trees_of(classes) * self.entry_words

    # Sizes

    def trees_of(self, classes: int) -> int:
        """Return the number of trees for this number of classes."""
        return committees(classes) * self.members

    def varying_words(self, values: int) -> int:
        """Return the words of a leaf record with this number of values of nominal attributes."""
        return self.values_at + values * SUMS

    def words(self, room: Room) -> int:
        return self.nodes_at + room[NODES] * NODE_WORDS + room[LEAVES] * self.leaf_words

    def least_words(self, classes: int) -> int:
        """Return the words of a block whose trees are one leaf each."""
        return self.fixed_words(classes) + self.trees_of(classes) * (NODE_WORDS + self.leaf_words)

    # Writing

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a block without trees."""
        super().plant(ints, t, room)
        boosting = boosting_at(ints, t)
        boosting.free_node = boosting.free_leaf = NO_NODE
        self.roots(ints, t)[...] = NO_NODE

    def copy(self, old: Any, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Write a block with the state of a source, whose schema may be smaller.

        A grown schema has more classes, which append trees, or more attributes, of which the trees' subsets
        are drawn again (core/learners/sgbt/residuals.py:draw_masks).
        """
        self.plant(target, t, room)
        self.copy_header(old, source, s, target, t, room)
        weights = old.class_weights(source, s)
        self.class_weights(target, t)[: len(weights)] = weights
        entries = old.entries(source, s)
        self.entries(target, t)[: len(entries), : old.entry_words] = entries
        nodes, leaves, _ = old.live_room(source, s)
        self.nodes_of(target, t)[:nodes] = old.nodes_of(source, s)[:nodes]
        before, now = old.leaves_of(source, s)[:leaves], self.leaves_of(target, t)[:leaves]
        now[:, : old.values_at] = before[:, : old.values_at]
        if self.dims.values:
            carried = values_carried(old.dims, self.dims)
            self.value_sums(now)[:, carried] = old.value_sums(before)

    # Views, not copied

    def class_weights(self, ints: Ints, t: int) -> Floats:
        """Return the weight of the labels of each class."""
        weights: Floats = ints[t + self.weights_at : t + self.entries_at].view(np.float64)
        return weights

    def entries(self, ints: Ints, t: int) -> Ints:
        """Return the entries of trees, int64[tree, word]."""
        return ints[t + self.entries_at : t + self.nodes_at].reshape(-1, self.entry_words)

    def roots(self, ints: Ints, t: int) -> Ints:
        """Return the number of the root of each tree, NO_NODE if it is not planted."""
        roots: Ints = rows(self.entries(ints, t), row_type(TreeEntry, self.entry_words)).root[:, 0]
        return roots

    def nodes_of(self, ints: Ints, t: int) -> Ints:
        """Return all node records, int64[capacity, word]."""
        first = t + self.nodes_at
        capacity = int(boosting_at(ints, t).node_capacity)
        return ints[first : first + capacity * NODE_WORDS].reshape(capacity, NODE_WORDS)

    def leaves_of(self, ints: Ints, t: int) -> Ints:
        """Return all leaf records, int64[capacity, word]."""
        room = self.room(ints, t)
        first, end = t + self.words((room[NODES], 0, 0)), t + self.words(room)
        return ints[first:end].reshape(room[LEAVES], self.leaf_words)

    def value_sums(self, leaves: Ints) -> Ints:
        """Return the sums of nominal values in leaf records, int64[leaf, value, word]."""
        return leaves[:, self.values_at :].reshape(len(leaves), self.dims.values, SUMS)

    # Growing

    def grow(self, model: HasBlocks, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Make room for a record (place: what it may take), or return the event that bytes are lacking."""
        if reason == GROW_FIRST:
            self._extend(model, t, place)
            return []
        boosting_at(model.ints, t).unreported = 0
        leaves = self.summary(model.ints, t).leaves
        return [GrowthStopped(row, index, leaves)] if t == model.block_places[0] else []

    def _extend(self, model: HasBlocks, t: int, asked: int) -> None:
        """Compute how many words the block may take, and make nodes and leaves half as many again.

        asked: the roots and the splits that the record may take, 0 before the words were computed.
        """
        ints = model.ints
        limit, leaf_words = self.reckon(model, t)
        boosting = boosting_at(ints, t)
        planted, splits = divmod(asked, SPLITS)
        needed = (
            max(int(boosting.nodes), int(boosting.live_nodes) + planted + 2 * splits),
            max(int(boosting.leaves), int(boosting.live_leaves) + planted + splits),
        )
        had = self.room(ints, t)
        if had[NODES] >= needed[NODES] and had[LEAVES] >= needed[LEAVES]:
            return
        room = [max(size, least + least // 2) for size, least in zip(had, needed, strict=False)]
        if room[NODES] * NODE_WORDS + room[LEAVES] * leaf_words > limit:
            # Half of the rest, so that the last bytes take few steps.
            rest = max(limit - needed[NODES] * NODE_WORDS - needed[LEAVES] * leaf_words, 0)
            more = rest // 2 // (2 * NODE_WORDS + leaf_words)
            room = [needed[NODES] + 2 * more, needed[LEAVES] + more]
        model.make_room(t, (room[NODES], room[LEAVES], 1))

    # Reading

    def _live_nodes(self, ints: Ints, t: int) -> Any:
        """Return the nodes of all trees, with the fields of BoostNode as columns."""
        return node_rows(self.nodes_of(ints, t)[: int(boosting_at(ints, t).nodes)])

    def summary(self, ints: Ints, t: int) -> BlockSummary:
        """Return the sum of the counts of all trees, and the largest depth.

        Alternate trees count only in the splits and the attempts.
        """
        boosting, nodes = boosting_at(ints, t), self._live_nodes(ints, t)
        nodes = nodes[(nodes.left != FREED) & (nodes.beside == 0)]
        return BlockSummary(
            leaves=int((nodes.left == NO_NODE).sum()),
            nodes=len(nodes),
            depth=int(nodes.depth.max(initial=0)),
            splits=int(boosting.splits),
            attempts=int(boosting.attempts),
            growth_stopped=self.has_stopped(ints, t),
        )

    def nodes(self, ints: Ints, t: int) -> int:
        boosting = boosting_at(ints, t)
        return int(boosting.live_nodes) - int(boosting.nodes_beside)

    def takes_attributes(self, ints: Ints, t: int) -> bool:
        """Return True: trees of any size take attributes; their subsets of all attributes are drawn again."""
        return True

    def explain(
        self, schema: Schema, ints: Ints, t: int, x: Floats, place: int | None = None
    ) -> tuple[Branch, ...]:
        """Return the path in the tree that speaks most for the class that wins; none without a tree.

        The path begins with the condition ``member = number``.
        """
        if not boosting_at(ints, t).trees:
            return ()
        jit.register(ints)
        shares, classes = np.zeros(max(self.dims.classes, 1)), int(ModelHeader.over(ints).classes)
        x = np.ascontiguousarray(x)
        winner = int(score(self.plan_words.ctypes.data, ints.ctypes.data, t, x, shares))
        committee = winner if classes > 2 else 0
        sign = 1.0 if winner == committee else -1.0
        seen = ModelHeader.over(ints).values_seen(PlanRecord.over(self.plan_words))
        nodes, roots = self._live_nodes(ints, t), self.roots(ints, t)
        best: tuple[float, tuple[Branch, ...]] | None = None
        for number in range(committee * self.members, (committee + 1) * self.members):
            if roots[number] < 0:
                continue
            path, value = path_of(self.dims, schema, nodes, int(roots[number]), x, seen)
            if best is None or sign * value > best[0]:
                best = sign * value, (Branch(MEMBER, "=", str(number)), *path)
        return best[1] if best else ()

    def outline(self, model: HasBlocks, t: int, depth: int | None) -> Iterator[Outline]:
        """Yield a node above all trees, then tree by tree, parents first. The node above has number 0.

        An alternate tree is the last child of the node that it stands beside.
        """
        ints, schema = model.ints, model.schema
        planted = [root for root in self.roots(ints, t).tolist() if root >= 0]
        ends = depth is not None and depth <= 0
        yield self.outline_above(ints, t, planted, MEMBER, ends)
        if ends:
            return
        nodes, classes = self._live_nodes(ints, t), int(ModelHeader.over(ints).classes)
        for root in planted:
            committee = int(nodes[root].tree) // self.members
            rest = 1 - committee if classes == 2 else None
            outlines = outline_of(self.dims, schema, nodes, root, (rest, committee), depth)
            yield from cut_at(outlines, depth)
