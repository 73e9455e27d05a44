"""Memory of a full forest: at a review its leaves are ranked, and the least promising leaves deactivated.

Trees grow freely until one of them has reached an equal part of the forest's bytes. From the first review
after that on, half of an equal part is reserved for each tree, regardless of its neighbours, and the tree
grows in it at once. The remaining half of all bytes is for the leaves that err most, in any tree. A tree that
has grown beyond its reserved part makes no split until a review, which comes after every REVIEW labels. At
the review its due leaves compete with inactive leaves of all trees for the free bytes, and for the records of
less promising active leaves in trees beyond their reserved part
(core/learners/hoeffding/growth/deactivation.py).

Between two reviews no tree's growth depends on another tree. So members may learn several rows one after the
other, and runs may be cut anywhere. The sum over all trees, each counted with at least its reserved part,
never exceeds the bytes of the forest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from core.events import Event
from core.layout.model import WORD, Floats, Ints
from core.layout.tree import TREE_HEADER, TreeShape
from core.learners.forest.member_state import (
    MemberState,
    classes_of,
    numbered,
    own_part,
    trees_bytes,
    whole_forest,
)
from core.learners.forest.placement import ForestPlacement
from core.learners.hoeffding import split_attempt
from core.learners.hoeffding.decision import FORGET, Decision, tree_of
from core.learners.hoeffding.growth import deactivation, splitting
from core.learners.protocol import HasBlocks
from core.tree import views
from core.tree.views import TreeView

Ranked = list[tuple[float, int, int]]
"""Promise, tree and number of leaves, sorted so that the least promising leaf is last."""


@dataclass(slots=True)
class Holding:
    """The nodes, leaf records and leaves of a tree, and the decisions of a review about them."""

    state: MemberState
    """The tree as its growth sees it."""
    nodes: int
    records: int
    active: Ints
    inactive: Ints
    promise: Floats
    wishes: dict[int, Decision]
    """Decisions for leaves that would be split, by number of the leaf."""
    leaving: list[int] = field(default_factory=list)
    splitting: list[int] = field(default_factory=list)
    returning: list[int] = field(default_factory=list)

    def bytes(self, shape: TreeShape, nodes: int = 0, records: int = 0) -> int:
        """Return the bytes of the tree with this many more nodes and leaf records; shape: of any tree."""
        words = (self.nodes + nodes) * shape.node_stride + (self.records + records) * shape.leaf_stride
        return (TREE_HEADER + words) * WORD


@dataclass(slots=True)
class Account:
    """Bytes of a forest: ``reserved`` is for each tree, ``free`` belongs to no tree yet."""

    shape: TreeShape
    reserved: float
    free: float

    def price(self, holding: Holding, nodes: int, records: int) -> float:
        """Return the growth of the sum if a tree gets this many more nodes and leaf records."""
        now, then = holding.bytes(self.shape), holding.bytes(self.shape, nodes, records)
        return max(then, self.reserved) - max(now, self.reserved)

    def pay(self, holding: Holding, nodes: int, records: int) -> None:
        """Give nodes and leaf records to a tree, or take them back (negative), and adjust the free bytes."""
        self.free -= self.price(holding, nodes, records)
        holding.nodes += nodes
        holding.records += records


def review(layout: ForestPlacement, model: HasBlocks, t: int, row: int, index: int) -> list[Event]:
    """Rank the leaves of a forest that is short of memory; return the events of members' splits.

    t: first word of the forest.
    """
    block = model.block_places.index(t)
    layout.forest(model.ints, t).ranked = 1
    holdings = {
        slot: _holding(_state_of(layout, model, t, slot), row)
        for slot in range(layout.slots)
        if layout.tree_at(model.ints, t, slot)
    }
    account = _account(layout, model, t, holdings)
    _choose(layout, account, holdings)
    if any(holding.leaving or holding.splitting or holding.returning for holding in holdings.values()):
        t = _make_room(layout, model, t, account, holdings)
    events: list[Event] = []
    for slot, holding in holdings.items():
        holding.state = _state_of(layout, model, model.block_places[block], slot)
        events += numbered(_carry_out(holding, row, index), slot)
        _let_go_on(account, holding)
    return events


def _state_of(layout: ForestPlacement, model: HasBlocks, t: int, slot: int) -> MemberState:
    """Return a tree as a review sees it: its plan allows it all bytes of the forest."""
    return MemberState(layout, model, t, slot, whole_forest(layout, model))


def _holding(state: MemberState, row: int) -> Holding:
    """Return the size of a tree, and which of its leaves would be split now if the tree has stopped."""
    t, ints = state.t, state.ints
    tree = views.tree_view(state.plan, ints, t)
    active, inactive = tree.leaves
    holding = Holding(
        state=state,
        nodes=int(tree.block.nodes),
        records=len(active),
        active=active,
        inactive=inactive,
        promise=deactivation.promises(tree, classes_of(ints)),
        wishes={},
    )
    if not tree.block.stopped:
        return holding
    learner, plan, block = state.spec.learner, state.plan.record, tree_of(state, t)
    for number in _waiting(tree, active).tolist():
        node = block.node(number)
        leaf = block.leaf_of(node)
        if split_attempt.is_mixed(plan, block, node, leaf):
            block.attempts += 1
            leaf.attempts += 1
        decision = learner.decide(state, block, node, leaf)
        if decision is None or decision.test == FORGET:
            leaf.next = 0.0
            split_attempt.reschedule(plan, block, node)
        else:
            holding.wishes[number] = decision
    return holding


def _waiting(tree: TreeView, active: Ints) -> Ints:
    """Return the active leaves that wait for a review, by number."""
    return active[np.isinf(tree.leaf_records.next[tree.nodes.slot[active]])]


def _account(layout: ForestPlacement, model: HasBlocks, t: int, holdings: dict[int, Holding]) -> Account:
    """Return the free bytes of a forest, for the classes and values that the model has learned."""
    ints, plan = model.ints, own_part(layout, model, t)
    first = int(model.plan.record.values_seen)
    values = int(ints[first : first + len(plan.values_index)].sum())
    shape = layout.trees.shape_of(classes_of(ints), values, 1, 1)
    reserved = plan.learned_bytes(ints)
    used = sum(max(holding.bytes(shape), reserved) for holding in holdings.values())
    least = (TREE_HEADER + shape.node_stride + shape.leaf_stride) * WORD
    free = trees_bytes(layout, model) - used - max(reserved, least) * (layout.slots - len(holdings))
    return Account(shape, reserved, free)


def _choose(layout: ForestPlacement, account: Account, holdings: dict[int, Holding]) -> None:
    """Decide which leaves are split, which get a leaf record again, and which lose theirs."""
    least = [
        (float(holding.promise[node]), slot, int(node))
        for slot, holding in holdings.items()
        for node in holding.active
        if holding.bytes(account.shape) > account.reserved
    ]
    least.sort(reverse=True)  # leaves are taken from the end
    most = [
        (-float(holding.promise[node]), slot, int(node))
        for slot, holding in holdings.items()
        for node in (*holding.wishes, *holding.inactive)
    ]
    while account.free < 0.0 and _take_one(account, holdings, least, math.inf) is not None:
        pass  # classes or values that came later take room in every leaf record
    for promise, slot, node in sorted(most):
        holding = holdings[slot]
        if node in holding.leaving:
            continue
        nodes, records = 0, 1
        decision = holding.wishes.get(node)
        if decision is not None:
            branches, records = splitting.divided(holding.state, holding.state.t, node, decision)
            nodes, records = len(branches), records - 1
            leaves = len(holding.active) + len(holding.inactive) + len(holding.splitting) + records
            if leaves > layout.learner.member.max_leaves:
                continue
        price = partial(account.price, holding, nodes, records)
        if account.free < price() and not _take(account, holdings, least, -promise, price):
            continue  # a cheaper leaf may follow
        account.pay(holding, nodes, records)
        (holding.returning if decision is None else holding.splitting).append(node)


def _take(
    account: Account, holdings: dict[int, Holding], least: Ranked, below: float, price: Callable[[], float]
) -> bool:
    """Deactivate leaves that promise less than ``below`` until a price can be paid; return whether it can.

    If it cannot, no leaf is deactivated. The price is the growth of the sum in the present state.
    """
    free, ranked, losers = account.free, least.copy(), list[Holding]()
    while account.free < price():
        loser = _take_one(account, holdings, least, below)
        if loser is None:
            for holding in losers:
                holding.leaving.pop()
                holding.records += 1
            account.free, least[:] = free, ranked
            return False
        losers.append(loser)
    return True


def _take_one(account: Account, holdings: dict[int, Holding], least: Ranked, below: float) -> Holding | None:
    """Deactivate the least promising leaf if it promises less than ``below``; return its tree or None."""
    while least and least[-1][0] < below:
        _, slot, node = least.pop()
        holding = holdings[slot]
        stays = len(holding.active) - len(holding.leaving) > 1
        if stays and node not in holding.splitting and account.price(holding, 0, -1) < 0.0:
            account.pay(holding, 0, -1)
            holding.leaving.append(node)
            return holding
    return None


def _make_room(
    layout: ForestPlacement, model: HasBlocks, t: int, account: Account, holdings: dict[int, Holding]
) -> int:
    """Take the records of leaves that are deactivated, and give each tree the room it will need."""
    most = own_part(layout, model, t).block_bytes(model.schema.n_classes)
    rooms = list(layout.room(model.ints, t))
    for slot, holding in holdings.items():
        state = holding.state
        if holding.leaving:
            tree = views.tree_view(state.plan, state.ints, state.t)
            deactivation.deactivate(state, tree, sorted(holding.leaving))
        nodes, slots = layout.trees.live_room(state.ints, state.t)
        nodes, slots = max(nodes, holding.nodes), max(slots, holding.records)
        have = rooms[2 * slot], rooms[2 * slot + 1]
        keeps = nodes <= have[0] and slots <= have[1] and layout.trees.words(have) * WORD <= most
        if not keeps:
            rooms[2 * slot : 2 * slot + 2] = nodes, slots
    return layout.lay_out_again(model, t, rooms)


def _carry_out(holding: Holding, row: int, index: int) -> list[Event]:
    """Split and activate leaves, in a tree that has room for them; return the events."""
    events: list[Event] = []
    state = holding.state
    for node in sorted(holding.splitting):
        event = splitting.install(state, state.t, node, holding.wishes[node], row, index)
        events += [] if event is None else [event]
    for node in sorted(holding.returning):
        tree = views.tree_view(state.plan, state.ints, state.t)
        deactivation.activate(state, tree, state.t, node)
    return events


def _let_go_on(account: Account, holding: Holding) -> None:
    """Let a tree grow between reviews again, if it is within its reserved part and no leaf is waiting."""
    tree = views.tree_view(holding.state.plan, holding.state.ints, holding.state.t)
    active, inactive = tree.leaves
    waits = len(_waiting(tree, active)) > 0
    fits = holding.bytes(account.shape, 2, 1) <= account.reserved
    tree.block.stopped = not fits or len(inactive) > 0 or waits
