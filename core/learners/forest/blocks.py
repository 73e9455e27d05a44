"""Blocks of forests: the layout, with everything that Python reads of members and background trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from core.events import Event
from core.kernels import jit
from core.layout.model import Floats, Ints
from core.layout.plan import PlanRecord
from core.learners.forest.growth import ForestGrowth
from core.learners.forest.member_state import MemberState, own_part
from core.learners.forest.placement import ForestPlacement
from core.learners.protocol import BlockSummary, HasBlocks, Stretch, workspace_of
from core.schema.dimensions import Dimensions
from core.schema.schema import Schema
from core.tree.conditions import Branch
from core.tree.outline import Outline

MEMBERS: Final = "member"
"""The condition above the trees of a forest."""


class ForestLayout(ForestPlacement):
    """Blocks of a forest: placed, grown (``ForestGrowth``), read and explained."""

    def __init__(self, learner: Any, dims: Dimensions) -> None:
        """Take the learner, which defines the members and the detectors that watch them."""
        super().__init__(learner, dims)
        self.growth = ForestGrowth(self)

    def grow(self, model: HasBlocks, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Make the due decisions of members and background trees, in order; return the events of members."""
        return self.growth.grow(model, reason, t, row, index)

    def play(self, model: HasBlocks, stretch: Stretch, index: int) -> list[Event]:
        """Let each member learn the rows in turn; return the events in the order of rows."""
        from core.learners.forest.stretch_run import StretchRun  # loads or compiles kernels

        return StretchRun(self.growth, model, stretch, index).play()

    def problems(self, model: HasBlocks, t: int) -> Iterator[str]:
        """Yield the suspicious parts of all trees."""
        for slot in range(self.slots):
            tree = self.tree_at(model.ints, t, slot)
            if tree:
                state = MemberState(self, model, t, slot, own_part(self, model, t))
                yield from (f"slot {slot}: {problem}" for problem in self.trees.problems(state, tree))

    def prepare(self, ints: Ints, t: int) -> Floats:
        """Return the weight routed through each node, member after member: float64[node]."""
        return np.concatenate([self.trees.prepare(ints, tree) for tree in self.members_at(ints, t)])

    def summary(self, ints: Ints, t: int) -> BlockSummary:
        """Return the sum of the members' counts, and the largest depth."""
        trees = [self.trees.summary(ints, tree) for tree in self.members_at(ints, t)]
        return BlockSummary(
            leaves=sum(tree.leaves for tree in trees),
            nodes=sum(tree.nodes for tree in trees),
            depth=max(tree.depth for tree in trees),
            splits=sum(tree.splits for tree in trees),
            attempts=sum(tree.attempts for tree in trees),
            growth_stopped=any(tree.growth_stopped for tree in trees),
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
        branches: list[Branch] = []
        for member in np.flatnonzero(decided).tolist():
            branches.append(Branch(MEMBERS, "=", str(member)))
            branches += self.trees.explain(schema, ints, self.tree_at(ints, t, member), x)
        return tuple(branches)

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
        plan = PlanRecord(self.plan_words, self.plan_words.view(np.float64), 0)
        forest = self.forest(ints, t)
        best = poll(plan, forest, routed.ctypes.data, x.reshape(1, -1), workspace, votes)
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
