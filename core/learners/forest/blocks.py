"""Blocks of forests: the layout, with everything that Python reads of members and background trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from core.kernels import jit
from core.learners.forest.growth import ForestGrowth
from core.learners.protocol import BlockSummary, HasBlocks, workspace_of
from core.schema.schema import Schema
from core.tree.conditions import Branch
from core.tree.layout import Floats, Ints
from core.tree.outline import Outline

MEMBERS: Final = "member"
"""The condition above the trees of a forest."""


class ForestLayout(ForestGrowth):
    """Blocks of a forest: laid out (``ForestPlacement``), grown (``ForestGrowth``), read and explained."""

    def prepare(self, ints: Ints, t: int) -> Floats:
        """Return the weight routed through each node, member after member: float64[node]."""
        return np.concatenate([self.trees.prepare(ints, tree) for tree in self.members_at(ints, t)])

    def summary(self, ints: Ints, t: int) -> BlockSummary:
        """Return the sum of the members' counts, and the largest depth."""
        found = [self.trees.summary(ints, tree) for tree in self.members_at(ints, t)]
        return BlockSummary(
            leaves=sum(each.leaves for each in found),
            nodes=sum(each.nodes for each in found),
            depth=max(each.depth for each in found),
            splits=sum(each.splits for each in found),
            attempts=sum(each.attempts for each in found),
            growth_stopped=any(each.growth_stopped for each in found),
        )

    def explain(
        self, schema: Schema, ints: Ints, t: int, x: Floats, place: int | None = None
    ) -> tuple[Branch, ...]:
        """Return the paths of the members that decided: those whose class is the forest's answer.

        The paths follow each other; each begins with the condition ``member = number``. With weighted votes a
        class may win that no member ranks first; then the paths of all members that voted are returned.
        """
        votes, winner = self.votes(ints, t, np.ascontiguousarray(x))
        decided = votes == winner
        if not decided.any():
            decided = votes >= 0
        found: list[Branch] = []
        for member in np.flatnonzero(decided).tolist():
            found.append(Branch(MEMBERS, "=", str(member)))
            found += self.trees.explain(schema, ints, self.tree_at(ints, t, member), x)
        return tuple(found)

    def votes(self, ints: Ints, t: int, x: Floats) -> tuple[Ints, int]:
        """Return the class that each member predicts for a record (float64[d]), and the forest's.

        int64[member]; -1: the member has seen nothing.
        """
        from core.learners.forest.kernels import poll  # loads or compiles kernels

        routed = self.prepare(ints, t)
        for words in (routed, ints):
            jit.register(words)
        votes = np.full(self.members, -1, dtype=np.int64)
        workspace = workspace_of(len(x), self.dims.classes)
        plan = self.plan_words.ctypes.data
        best = poll(plan, ints.ctypes.data, t, routed.ctypes.data, x.reshape(1, -1), workspace, votes)
        return votes, int(best)

    def outline(self, model: HasBlocks, t: int, depth: int | None) -> Iterator[Outline]:
        """Yield the forest as a node above all members, then tree by tree, parents first.

        The forest has number 0. The nodes of a member are numbered after those of the member before.
        """
        ints = model.ints
        places = self.members_at(ints, t)
        ends = depth is not None and depth <= 0
        below = None if depth is None else depth - 1
        after = np.cumsum([1] + [self.trees.nodes(ints, tree) for tree in places])
        firsts = after[:-1].tolist()
        trees = [list(self.trees.outline(model, tree, below)) for tree in places] if not ends else []
        roots = [next(iter(self.trees.outline(model, tree, 0))) for tree in places]
        masses = np.sum([root.masses for root in roots], axis=0) if roots[0].masses else np.zeros(0)
        yield Outline(
            number=0,
            parent=-1,
            depth=0,
            branch=None,
            test=MEMBERS,
            children=() if ends else tuple(firsts),
            masses=tuple(masses.tolist()),
            majority=int(np.argmax(masses)) if masses.any() else None,
            routed=roots[0].routed,
            leaves_below=self.summary(ints, t).leaves if ends else 0,
        )
        for member, nodes in enumerate(trees):
            first = firsts[member]
            for node in nodes:
                yield replace(
                    node,
                    number=first + node.number,
                    parent=first + node.parent if node.parent >= 0 else 0,
                    depth=node.depth + 1,
                    branch=node.branch or Branch(MEMBERS, "=", str(member)),
                    children=tuple(first + child for child in node.children),
                )
