"""MOA's memory limit, under which the trees of VFS Table 2 were grown: which leaves may learn.

The published command lines load MOA's size agent and set no other limit, so that its default applies: 32
MiB, measured every million records. After a measurement that exceeds it, each split lets only as many
leaves learn as fit, in the order of the weight that the majority class gets wrong, the highest first. The
other leaves only count classes. Two traits of the published code decide how many leaves fit, and at what
price:

- a leaf is counted twice, because IMAC's queue at the leaf holds a comparison object with a reference to
  it;
- nodes are made without the class counts that they are given: a leaf loses them when it stops to learn,
  and again when it may learn again.

The limit is not part of a learner: ``max_bytes`` bounds a tree in a way that loses nothing. Inactive
leaves keep their leaf records here, so that time and memory do not fall as they would with fewer active
leaves.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from core.events import Event, Split
from core.layout.tree import ABSENT, LEAF, MULTIWAY, Tree
from core.learners.hoeffding.growth import splitting
from core.learners.hoeffding.schedules._imac import state as imac
from core.model.model import Model
from core.model_table import LABELLED, Answers, ModelTable
from core.run import DECISION_DUE, Cursor
from core.tree import views
from core.tree.views import TreeView
from streamapp.lab.experiments import java_sizes as java

LIMIT = 33_554_432
PERIOD = 1_000_000


class MemoryLimit:
    """MOA's estimates of one tree's memory, and its inactive leaves; ``inactive``: node numbers."""

    def __init__(self, limit: float = LIMIT) -> None:
        """Begin with a tree whose leaves were not measured yet."""
        self.limit = limit
        self.inactive: set[int] = set()
        self.active_bytes = self.inactive_bytes = 0.0
        self.overhead = 1.0

    def measure(self, model: Model) -> None:
        """Estimate the bytes of an active and of an inactive leaf from all present leaves."""
        tree = views.tree_view(model.plan, model.ints, model.first)
        leaves = list(leaves_in_order(tree))
        active = [_sizes(model, tree, node) for node in leaves if node not in self.inactive]
        counting = [tree.masses[node] for node in leaves if node in self.inactive]
        inactive = [java.INACTIVE_LEAF + java.distribution(masses) for masses in counting]
        if active:
            self.active_bytes = sum(alone for alone, _ in active) / len(active)
        if inactive:
            self.inactive_bytes = sum(inactive) / len(inactive)
        splits = tree.block.splits * (java.SPLIT_NODE + java.distribution(np.zeros(0)))
        actual = java.TREE + splits + sum(counted for _, counted in active) + sum(inactive)
        self.overhead = actual / (len(active) * self.active_bytes + len(inactive) * self.inactive_bytes)
        if actual > self.limit:
            self.enforce(model)

    def enforce(self, model: Model) -> None:
        """Let as many leaves learn as fit; if all leaves are active and fit by the estimates, do nothing."""
        tree = views.tree_view(model.plan, model.ints, model.first)
        leaves = tree.block.leaves
        if not self.inactive and self._fits(leaves, leaves):
            return
        order = list(leaves_in_order(tree))
        masses = tree.masses[order]
        promise = masses.sum(axis=1) - masses.max(axis=1)
        # As many as fit, counted from one upwards: the sum need not grow with the number of active leaves.
        fitting = next((n for n in range(leaves) if not self._fits(n + 1, leaves)), leaves)
        for rank, place in enumerate(np.argsort(promise, kind="stable").tolist()):
            node = order[place]
            if rank < leaves - fitting:
                if node not in self.inactive:
                    self.deactivate(model, node)
            elif node in self.inactive:
                self.inactive.remove(node)
                splitting.forget(model, model.first, node)

    def deactivate(self, model: Model, node: int) -> None:
        """Let a leaf only count classes from now on."""
        self.inactive.add(node)
        splitting.forget(model, model.first, node)
        tree = views.tree_view(model.plan, model.ints, model.first)
        tree.leaf_records.next[tree.nodes.slot[node]] = math.inf

    def _fits(self, active: int, leaves: int) -> bool:
        estimate = active * self.active_bytes + (leaves - active) * self.inactive_bytes
        return estimate * self.overhead <= self.limit


class LimitedTable(ModelTable):
    """A table whose models of ``compat="imac"`` grow under MOA's memory limit; it learns all labels at once.

    ``limit`` in bytes; ``period``: records between two measurements, where runs of rows have to end.
    """

    def __init__(self, limit: float = LIMIT, period: int = PERIOD) -> None:
        super().__init__()
        self.period = period
        self.limits: defaultdict[int, MemoryLimit] = defaultdict(lambda: MemoryLimit(limit))

    def answer(self, model: Any, x: Any, label: Any, weight: Any, mode: int = LABELLED) -> Answers:
        """Answer a run of rows; if it ends with a period, measure its models."""
        indices = np.unique(model).tolist()
        before = {index: self._labels(index) for index in indices}
        answers = super().answer(model, x, label, weight, mode)
        for index in indices:
            periods, beyond = divmod(self._labels(index), self.period)
            if periods > before[index] // self.period:
                if beyond:
                    message = f"a run of rows must end at record {periods * self.period}; cut it there"
                    raise ValueError(message)
                self.limits[index].measure(self.model(index))
        return answers

    def _labels(self, index: int) -> int:
        return int(self.model(index).header.labels)

    def _decide(self, reason: int, cursor: Cursor, index: int, events: list[Event]) -> None:
        """Take the decision that stopped the kernel; after a split, decide which leaves may learn."""
        n_before, model = len(events), self.model(index)
        tree = Tree(model.ints, model.floats, int(cursor.block))
        node = int(tree.number(tree.node_of(int(cursor.place))))
        super()._decide(reason, cursor, index, events)
        if reason != DECISION_DUE:
            return
        model, limit = self.model(index), self.limits[index]
        if any(isinstance(event, Split) for event in events[n_before:]):
            limit.enforce(model)
        elif _has_forgotten(model, node):
            # The best decision was not to split: MOA makes the leaf inactive, and active again if there is
            # room.
            limit.deactivate(model, node)
            limit.enforce(model)


def leaves_in_order(tree: TreeView) -> Iterator[int]:
    """Yield the numbers of the leaves, depth first, from the first branch to the last."""
    waiting = [0]
    while waiting:
        node = waiting.pop()
        record = tree.block.node(node)
        if record.kind == LEAF:
            yield node
        elif record.kind != ABSENT:
            waiting.extend(reversed(range(record.child, record.child + record.children)))


def _has_forgotten(model: Model, node: int) -> bool:
    tree = views.tree_view(model.plan, model.ints, model.first)
    slot = tree.nodes.slot.item(node)
    return bool(slot >= 0 and tree.leaf_records.observed[slot] == 0.0)


def _sizes(model: Model, tree: TreeView, node: int) -> tuple[int, int]:
    """Return the bytes of an active leaf, and its bytes in the measurement of the whole tree."""
    slot = tree.nodes.slot.item(node)
    plan = model.plan.record
    firsts = np.array([plan.nominal_column(j).first for j in range(plan.nominal)], dtype=np.int64)
    queue, own = _watched(model, tree, slot)
    own += java.ACTIVE_LEAF + java.distribution(tree.masses[node])
    own += java.observers(tree, slot, firsts, model.schema.n_attributes)
    return own + queue, own + own + queue


def _watched(model: Model, tree: TreeView, slot: int) -> tuple[int, int]:
    """Return the bytes of the queue of a leaf, and of the leaf's other lists, which only IMAC fills."""
    sections = [section[slot] for section in tree.schedule]
    if not sections or imac.ImacState.over(sections[0]).checked <= 0.0:
        return java.QUEUE + int(java.references(11)), java.LIST + int(java.references(0))
    places = sections[1].view(np.int64)[:, 0]
    waiting, illegal = (int((places == place).sum()) for place in (imac.POTENTIAL, imac.ILLEGAL))
    queue = java.QUEUE + int(java.references(waiting)) + java.TUPLE * waiting
    own = java.LIST + int(java.references(illegal)) + java.INTEGER * illegal + java.CRITERION
    count, rows = int(imac.ImacState.over(sections[0]).count), sections[2].view(np.int64)
    vector = java.distribution(tree.seen[slot])
    for attribute, test in rows[[imac.ATTRIBUTE, imac.TEST], :count].T.tolist():
        branches = len(model.schema.attributes[attribute].values) if test == MULTIWAY else 2
        own += java.CANDIDATE + int(java.references(java.room(branches))) + branches * vector
    return queue, own + int(java.references(count))
