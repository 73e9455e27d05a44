"""Blocks of UFFT: a forest; how it is laid out, copied, grown and read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from core.events import Drift, Event, GrowthStopped, Split
from core.kernels import jit
from core.kernels.jit import kernel, start_of, words_at
from core.kernels.records import row_type, rows
from core.layout.learning import GROW_FIRST
from core.layout.model import Floats, Ints, ModelHeader
from core.layout.plan import PlanRecord, plan_at
from core.layout.tree import NO_NODE
from core.learners.arenas import FIRST, SECOND, ArenaLayout
from core.learners.protocol import BlockSummary, HasBlocks, Room
from core.learners.ufft.descent import fuse_here
from core.learners.ufft.layout import (
    CLASS_FIELDS,
    COLUMN_WORDS,
    EVENT_FIELDS,
    FREED,
    HEADER,
    NO_ROOM,
    NODE_FIELDS,
    PAGE_ROWS,
    PAIR_FIELDS,
    PRUNED,
    ROW_FIELDS,
    SPLIT,
    STATISTICS,
    STEP_FIELDS,
    TIE,
    AttributeStep,
    ClassEntry,
    PairEntry,
    PairForest,
    PairForestPlaces,
    RingRow,
    WaitingEvent,
    pair_number,
    pair_of,
)
from core.learners.ufft.reading import FOREST, node_rows, outline_of, path_of, test_of
from core.numeric.idbd import START
from core.schema.dimensions import Dimensions, values_carried
from core.schema.schema import Schema
from core.tree.conditions import Branch
from core.tree.outline import Outline

NODES, PAGES = FIRST, SECOND


@kernel("int64(int64, int64, int64, float64[::1], float64[::1])", alone=True)
def score(plan_address: int, address: int, t: int, x, shares) -> int:
    """Write the class shares of the forest at word t for a record; return the class."""
    ints, floats = words_at(address)
    return fuse_here(plan_at(plan_address), PairForest(ints, floats, t), start_of(x), start_of(shares))


def forest_at(ints: Ints, t: int) -> PairForest:
    """Return the forest at word t of a model's words."""
    return PairForest(ints, ints.view(np.float64), t)


class UfftLayout(ArenaLayout):
    """The blocks of UFFT for records of certain dimensions; room: (node records, pages, reckoned)."""

    header: ClassVar[Any] = PairForest
    capacities: ClassVar[tuple[str, str]] = ("node_capacity", "page_capacity")
    used: ClassVar[tuple[str, str]] = ("nodes", "pages")
    learned_size: ClassVar[str] = "learned_node"
    place_name: ClassVar[str] = "class, node or attribute"
    block_names: ClassVar[tuple[str, str]] = ("main forest", "background forest")

    def __init__(self, learner: Any, dims: Dimensions) -> None:
        """Take the learner, whose parameters define the parts of a node record."""
        super().__init__(learner, dims)
        self.columns = len(dims.numeric) + dims.values
        self.statistics_at = NODE_FIELDS + len(learner.drift.initial())
        self.unit_at = self.statistics_at + self.columns * COLUMN_WORDS
        self.unit_words = 3 * (1 + self.columns) if learner.leaf_model == "idbd" else 0
        self.node_words = self.varying_words(dims.values)
        self.row_words = ROW_FIELDS + dims.attributes
        self.page_words = PAGE_ROWS * self.row_words
        self.class_words = CLASS_FIELDS + -(-learner.memory // PAGE_ROWS)
        self.classes_at, self.events_at, self.steps_at, self.nodes_at = self._places(dims.classes)
        self.offsets = tuple(getattr(self, name) for name in PairForestPlaces.FIELDS)

    def _places(self, classes: int) -> tuple[int, int, int, int]:
        """Return where classes, events, steps and nodes begin in a block with this number of classes."""
        classes_at = HEADER + classes * (classes - 1) // 2 * PAIR_FIELDS
        events_at = classes_at + classes * self.class_words
        steps_at = events_at + classes * EVENT_FIELDS
        return classes_at, events_at, steps_at, steps_at + self.step_words

    def fixed_words(self, classes: int) -> int:
        """Return the words before the node records for this number of classes."""
        return self._places(classes)[-1]

    @property
    def step_words(self) -> int:
        """Return the words of the steps of all numeric attributes."""
        return len(self.dims.numeric) * STEP_FIELDS

    # Sizes

    def varying_words(self, values: int) -> int:
        """Return the words of a node record with this number of values of nominal attributes."""
        columns = len(self.dims.numeric) + values
        unit = 3 * (1 + columns) if self.unit_words else 0
        return self.statistics_at + columns * COLUMN_WORDS + unit

    def words(self, room: Room) -> int:
        return self.nodes_at + room[NODES] * self.node_words + room[PAGES] * self.page_words

    def least_words(self, classes: int) -> int:
        """Return the words of a block with a tree of one leaf, and a page for its rows."""
        return self.fixed_words(classes) + self.node_words + self.page_words

    # Writing

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a forest without trees."""
        super().plant(ints, t, room)
        forest_at(ints, t).free = NO_NODE
        self.pairs(ints, t).root = NO_NODE
        self.steps(ints, t).last = math.nan

    def copy(self, old: Any, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Write a block with the state of a source, whose schema may be smaller."""
        self.plant(target, t, room)
        self.copy_header(old, source, s, target, t, room)
        pairs, steps = old.pairs(source, s), old.steps(source, s)
        self.pairs(target, t)[: len(pairs)] = pairs
        self.steps(target, t)[: len(steps)] = steps
        before, now = old.classes(source, s), self.classes(target, t)
        now[: len(before), : before.shape[1]] = before
        nodes, pages, _ = old.live_room(source, s)
        before, now = old.nodes_of(source, s)[:nodes], self.nodes_of(target, t)[:nodes]
        if old.columns == self.columns:
            now[...] = before
        else:
            self._copy_columns(old, before, now)
        before, now = old.pages_of(source, s)[:pages], self.pages_of(target, t)[:pages]
        now[:, :, : old.row_words] = before
        if old.row_words < self.row_words:
            kept = rows(before, row_type(RingRow, old.row_words)).weight[:, :, 0] != 0.0
            now.view(np.float64)[kept, old.row_words :] = math.nan  # attributes that came later

    def _copy_columns(self, old: Any, before: Ints, now: Ints) -> None:
        """Copy node records that get more columns (int64[node, word])."""
        numeric, was_numeric = len(self.dims.numeric), len(old.dims.numeric)
        carried = numeric + values_carried(old.dims, self.dims)
        places = np.concatenate((np.arange(was_numeric), carried)).astype(np.int64)
        now[:, : old.statistics_at] = before[:, : old.statistics_at]
        nodes, new_nodes = node_rows(before), node_rows(now)
        inner = nodes.left >= 0
        new_nodes.column[inner] = places[nodes.column[inner]]
        was, is_now = old.statistics(before), self.statistics(now)
        is_now[:, places] = was
        for column, (first, size) in old.dims.value_places.items():
            new_first, new_size = self.dims.value_places[column]
            if size and new_size > size:
                # A value that had no column before: it was 0 there in all records so far, which had another
                # value.
                weight = was[:, was_numeric + first, :, :1]
                fresh = slice(numeric + new_first + size, numeric + new_first + new_size)
                is_now[:, fresh, :, :1] = weight[:, np.newaxis]
        if self.unit_words:
            inputs, fresh_inputs = old.unit(before), self.unit(now)
            fresh_inputs[nodes.left != FREED, 1] = START
            fresh_inputs[:, :, 0] = inputs[:, :, 0]
            fresh_inputs[:, :, 1 + places] = inputs[:, :, 1:]

    # Views, not copied

    def pairs(self, ints: Ints, t: int) -> Any:
        """Return the pairs, with the fields of PairEntry as columns."""
        return rows(ints[t + HEADER : t + self.classes_at], row_type(PairEntry, PAIR_FIELDS))

    def classes(self, ints: Ints, t: int) -> Ints:
        """Return the classes, int64[class, word]."""
        return ints[t + self.classes_at : t + self.events_at].reshape(-1, self.class_words)

    def class_weights(self, ints: Ints, t: int) -> Floats:
        """Return the weight of the labels of each class."""
        words = ints[t + self.classes_at : t + self.events_at]
        weights: Floats = rows(words, row_type(ClassEntry, self.class_words)).weight
        return weights

    def steps(self, ints: Ints, t: int) -> Any:
        """Return the steps of the numeric attributes, with the fields of AttributeStep as columns."""
        return rows(ints[t + self.steps_at : t + self.nodes_at], row_type(AttributeStep, STEP_FIELDS))

    def nodes_of(self, ints: Ints, t: int) -> Ints:
        """Return all node records, int64[capacity, word]."""
        first = t + self.nodes_at
        capacity = int(forest_at(ints, t).node_capacity)
        return ints[first : first + capacity * self.node_words].reshape(capacity, self.node_words)

    def pages_of(self, ints: Ints, t: int) -> Ints:
        """Return all pages, int64[capacity, row, word]."""
        room = self.room(ints, t)
        first, end = t + self.words((room[NODES], 0, 0)), t + self.words(room)
        return ints[first:end].reshape(room[PAGES], PAGE_ROWS, self.row_words)

    def statistics(self, nodes: Ints) -> Floats:
        """Return the statistics of node records: float64[node, column, class of the pair, STATISTICS]."""
        words = nodes[:, self.statistics_at : self.unit_at].view(np.float64)
        return words.reshape(len(nodes), self.columns, 2, STATISTICS)

    def unit(self, nodes: Ints) -> Floats:
        """Return the units of node records: float64[node, 3, 1 + column]: w, β, h."""
        return nodes[:, self.unit_at :].view(np.float64).reshape(len(nodes), 3, 1 + self.columns)

    # Growing

    def grow(self, model: HasBlocks, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Make room for a record (place: node records that it may take), or return the events."""
        if reason == GROW_FIRST:
            self._extend(model, t, place)
            return []
        is_first = t == model.block_places[0]
        events = self._take_events(model.ints, t, row, index)
        return events if is_first else []

    def _extend(self, model: HasBlocks, t: int, asked: int) -> None:
        """Compute how many words the block may take, and make nodes and pages half as many again."""
        ints = model.ints
        limit, node_words = self.reckon(model, t)
        nodes, pages, _ = self.live_room(ints, t)
        needed_pages = pages
        if nodes * node_words + (pages + 1) * self.page_words <= limit:
            needed_pages += 1
        fitting = max((limit - needed_pages * self.page_words) // node_words - nodes, 0)
        needed_nodes = nodes + min(asked, fitting)
        had = self.room(ints, t)
        if had[NODES] >= needed_nodes and had[PAGES] >= needed_pages:
            return
        room = [max(had[NODES], needed_nodes), max(had[PAGES], needed_pages)]
        if had[NODES] < needed_nodes:
            room[NODES] = max(needed_nodes, had[NODES] + had[NODES] // 2)
        if had[PAGES] < needed_pages:
            room[PAGES] = max(needed_pages, had[PAGES] + had[PAGES] // 2)
        if room[NODES] * node_words + room[PAGES] * self.page_words > limit:
            # Each gets half of the rest, so that the last bytes take few steps.
            spare = max(limit - needed_nodes * node_words - needed_pages * self.page_words, 0)
            room = [
                needed_nodes + spare // 2 // node_words,
                needed_pages + spare // 2 // self.page_words,
            ]
        model.make_room(t, (room[NODES], room[PAGES], 1))

    def _take_events(self, ints: Ints, t: int, row: int, index: int) -> list[Event]:
        """Return the events that wait in a block, and clear them."""
        forest, first = forest_at(ints, t), t + self.events_at
        events: list[Event] = []
        for number in range(int(forest.events)):
            waiting = WaitingEvent(ints, forest.floats, first + number * EVENT_FIELDS)
            events.append(self._event_of(waiting, row, index, self.summary(ints, t).leaves))
        ints[first : first + len(events) * EVENT_FIELDS] = 0
        forest.events = 0
        return events

    def _event_of(self, waiting: WaitingEvent, row: int, index: int, leaves: int) -> Event:
        """Return an event that waits; row, index: of the record, and of the model in its table."""
        if waiting.kind == NO_ROOM:
            return GrowthStopped(row, index, leaves)
        node, depth, pair = int(waiting.node) + 1, int(waiting.depth), pair_of(int(waiting.pair))
        if waiting.kind == SPLIT or waiting.kind == TIE:
            attribute, test, value = test_of(self.dims, int(waiting.column), float(waiting.cut))
            return Split(
                row=row,
                model=index,
                node=node,
                attribute=attribute,
                test=test,
                value=value,
                merits=(float(waiting.best), float(waiting.second)),
                bound=float(waiting.bound),
                n=float(waiting.weight),
                reason="tie" if waiting.kind == TIE else "gap",
                pair=pair,
                depth=depth,
            )
        return Drift(
            row=row,
            model=index,
            level="drift",
            detector=self.learner.drift.name,
            error_rate=float(waiting.weight),
            action="subtree pruned" if waiting.kind == PRUNED else "leaf began anew",
            node=node,
            depth=depth,
            pair=pair,
        )

    # Reading

    def summary(self, ints: Ints, t: int) -> BlockSummary:
        """Return the sum of the counts of all trees, and the largest depth."""
        forest = forest_at(ints, t)
        nodes = node_rows(self.nodes_of(ints, t)[: int(forest.nodes)])
        return BlockSummary(
            leaves=int(forest.live + forest.trees) // 2,
            nodes=int(forest.live),
            depth=int(nodes.depth.max(initial=0)),  # 0 in free records
            splits=int(forest.splits),
            attempts=int(forest.attempts),
            growth_stopped=self.has_stopped(ints, t),
        )

    def nodes(self, ints: Ints, t: int) -> int:
        return int(forest_at(ints, t).live)

    def takes_attributes(self, ints: Ints, t: int) -> bool:
        """Return whether no tree was split yet."""
        return not forest_at(ints, t).splits

    def explain(
        self, schema: Schema, ints: Ints, t: int, x: Floats, place: int | None = None
    ) -> tuple[Branch, ...]:
        """Return the branches of one tree, for the two classes with the largest scores; none without a tree.

        The other trees of the winner vote, too, but this tree prefers the winner to the runner-up.
        """
        shares = np.zeros(max(self.dims.classes, 1))
        jit.register(ints)
        winner = score(self.plan_words.ctypes.data, ints.ctypes.data, t, np.ascontiguousarray(x), shares)
        rivals = [c for c in range(int(ModelHeader.over(ints).classes)) if c != winner]
        if not rivals:
            return ()
        runner_up = max(rivals, key=lambda c: (shares[c], -c))
        first, second = sorted((int(winner), runner_up))
        number = int(self.pairs(ints, t).root[pair_number(first, second)])
        if number < 0:
            return ()
        seen = ModelHeader.over(ints).values_seen(PlanRecord.over(self.plan_words))
        return path_of(self.dims, schema, node_rows(self.nodes_of(ints, t)), number, x, seen)

    def outline(self, model: HasBlocks, t: int, depth: int | None) -> Iterator[Outline]:
        """Yield the forest as a node above all trees, then tree by tree, parents first.

        Nodes have the same numbers as in events; the forest has number 0.
        """
        ints, schema = model.ints, model.schema
        roots = self.pairs(ints, t).root
        planted = [(pair, int(roots[pair])) for pair in np.flatnonzero(roots >= 0).tolist()]
        ends = depth is not None and depth <= 0
        yield self.outline_above(ints, t, [root for _, root in planted], FOREST, ends)
        if not ends:
            nodes = node_rows(self.nodes_of(ints, t))
            for pair, root in planted:
                names = " | ".join(schema.classes[c] for c in pair_of(pair))
                yield from outline_of(self.dims, schema, nodes, root, Branch("class", "in", names), depth)
