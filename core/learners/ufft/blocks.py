"""Blocks of UFFT: a forest; how it is laid out, copied, grown and read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import numpy as np

from core.events import Drift, Event, GrowthStopped, Kind, Split
from core.kernels import jit
from core.kernels.jit import kernel, start_of, words_at
from core.learners.protocol import BlockLayout, BlockSummary, HasBlocks, Room
from core.learners.ufft import layout as of
from core.learners.ufft.descent import fuse_here
from core.numeric.idbd import START
from core.schema.dimensions import Dimensions, values_carried
from core.schema.schema import Schema
from core.tree import layout as at
from core.tree.conditions import Branch
from core.tree.layout import Floats, Ints
from core.tree.outline import Outline

# A room: node records, pages, and 1 if it was computed how many of them fit into the bytes. A snapshot drops
# the third number.
NODES, PAGES, RECKONED = range(3)

_NO_WORDS: Final = np.zeros(0, dtype=np.int64)
FOREST: Final = "class pair"
"""The condition of the node above all trees in an outline."""


@kernel("int64(int64, int64, int64, float64[::1], float64[::1])", alone=True)
def score(plan_address: int, address: int, t: int, x, shares) -> int:
    """Write the class shares of the forest at word t for a record; return the class."""
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    return fuse_here(plan, params, ints, floats, t, start_of(x), start_of(shares))


class UfftLayout(BlockLayout):
    """The blocks of UFFT for records of certain dimensions; room: (node records, pages, reckoned)."""

    new_room: ClassVar[Room] = (0, 0, 0)
    place_name: ClassVar[str] = "class, node or attribute"
    block_names: ClassVar[tuple[str, str]] = ("main forest", "background forest")

    def __init__(self, learner: Any, dims: Dimensions) -> None:
        """Take the learner, whose parameters define the parts of a node record."""
        self.learner = learner
        self.dims = dims
        self.plan_words: Ints = _NO_WORDS
        """The words of the plan that the layout belongs to."""
        self.columns = len(dims.numeric) + dims.values
        self.statistics_at = of.NODE_FIELDS + len(learner.drift.initial())
        self.unit_at = self.statistics_at + self.columns * of.COLUMN_WORDS
        self.unit_words = 3 * (1 + self.columns) if learner.leaf_model == "idbd" else 0
        self.node_words = self.node_words_of(dims.values)
        self.row_words = of.ROW_FIELDS + dims.attributes
        self.page_words = of.PAGE_ROWS * self.row_words
        self.class_words = of.CLASS_FIELDS + -(-learner.memory // of.PAGE_ROWS)
        self.classes_at, self.events_at, self.steps_at, self.nodes_at = self._places(dims.classes)
        self.offsets = (
            self.columns,
            self.node_words,
            self.statistics_at,
            self.unit_at,
            self.classes_at,
            self.class_words,
            self.events_at,
            self.nodes_at,
            self.page_words,
            self.steps_at,
        )

    def _places(self, classes: int) -> tuple[int, int, int, int]:
        """Return where classes, events, steps and nodes begin in a block with this number of classes."""
        classes_at = of.HEADER + classes * (classes - 1) // 2 * of.PAIR_FIELDS
        events_at = classes_at + classes * self.class_words
        steps_at = events_at + classes * of.EVENT_FIELDS
        return classes_at, events_at, steps_at, steps_at + self.step_words

    @property
    def step_words(self) -> int:
        """Return the words of the steps of all numeric attributes."""
        return len(self.dims.numeric) * of.STEP_FIELDS

    # Sizes

    def node_words_of(self, values: int) -> int:
        """Return the words of a node record with this number of values of nominal attributes."""
        columns = len(self.dims.numeric) + values
        unit = 3 * (1 + columns) if self.unit_words else 0
        return self.statistics_at + columns * of.COLUMN_WORDS + unit

    def words(self, room: Room) -> int:
        return self.nodes_at + room[NODES] * self.node_words + room[PAGES] * self.page_words

    def least_words(self, classes: int) -> int:
        """Return the words of a block with a tree of one leaf, and a page for its rows."""
        return self._places(classes)[-1] + self.node_words + self.page_words

    def room(self, ints: Ints, t: int) -> Room:
        reckoned = int(ints.item(t + of.RECKONED) != 0)
        return ints.item(t + of.NODE_CAPACITY), ints.item(t + of.PAGE_CAPACITY), reckoned

    def live_room(self, ints: Ints, t: int) -> Room:
        return ints.item(t + of.NODES), ints.item(t + of.PAGES), 0

    def size_of(self, ints: Ints, t: int) -> int | None:
        """Return the words of a foreign block; None if its header contradicts the schema or itself."""
        if t + self.nodes_at > len(ints) or ints[t + of.CLASSES] != self.dims.classes:
            return None
        room = self.room(ints, t)
        if not all(0 <= size <= len(ints) for size in room):
            return None
        size = self.words(room)
        return size if t + size <= len(ints) and ints[t + of.BLOCK_WORDS] == size else None

    # Writing

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a forest without trees."""
        words = self.words(room)
        ints[t : t + words] = 0
        ints[t + of.BLOCK_WORDS] = words
        ints[t + of.CLASSES] = self.dims.classes
        ints[t + of.NODE_CAPACITY], ints[t + of.PAGE_CAPACITY] = room[NODES], room[PAGES]
        ints[t + of.FREE] = -1
        self.pairs(ints, t)[:, of.ROOT] = -1
        self.steps(ints, t)[:, of.STEP_LAST] = math.nan

    def copy(self, old: Any, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Write a block with the state of a source, whose schema may be smaller."""
        self.plant(target, t, room)
        end = of.HEADER if old is self and room[RECKONED] else of.RECKONED
        for word in range(of.NODES, end):
            if word != of.PAGE_CAPACITY:
                target[t + word] = source[s + word]
        before, now = old.pairs(source, s), self.pairs(target, t)
        now[: len(before)] = before
        before, now = old.classes(source, s), self.classes(target, t)
        now[: len(before), : before.shape[1]] = before
        known = old.steps(source, s)
        self.steps(target, t)[: len(known)] = known
        nodes, pages, _ = old.live_room(source, s)
        before, now = old.nodes_of(source, s)[:nodes], self.nodes_of(target, t)[:nodes]
        if old.columns == self.columns:
            now[...] = before
        else:
            self._copy_columns(old, before, now)
        before, now = old.pages_of(source, s)[:pages], self.pages_of(target, t)[:pages]
        now[:, :, : old.row_words] = before
        if old.row_words < self.row_words:
            kept = before[:, :, of.ROW_WEIGHT] != 0
            now.view(np.float64)[kept, old.row_words :] = math.nan  # attributes that came later

    def _copy_columns(self, old: Any, before: Ints, now: Ints) -> None:
        """Copy node records that get more columns (int64[node, word])."""
        numeric, was_numeric = len(self.dims.numeric), len(old.dims.numeric)
        carried = numeric + values_carried(old.dims, self.dims)
        places = np.concatenate((np.arange(was_numeric), carried)).astype(np.int64)
        now[:, : old.statistics_at] = before[:, : old.statistics_at]
        inner = before[:, of.NODE_LEFT] >= 0
        now[inner, of.NODE_COLUMN] = places[before[inner, of.NODE_COLUMN]]
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
            live = before[:, of.NODE_LEFT] != of.FREED
            fresh_inputs[live, 1] = START
            fresh_inputs[:, :, 0] = inputs[:, :, 0]
            fresh_inputs[:, :, 1 + places] = inputs[:, :, 1:]

    # Views, not copied

    def pairs(self, ints: Ints, t: int) -> Ints:
        """Return the pairs, int64[pair, PAIR_FIELDS]."""
        return ints[t + of.HEADER : t + self.classes_at].reshape(-1, of.PAIR_FIELDS)

    def classes(self, ints: Ints, t: int) -> Ints:
        """Return the classes, int64[class, word]."""
        return ints[t + self.classes_at : t + self.events_at].reshape(-1, self.class_words)

    def steps(self, ints: Ints, t: int) -> Floats:
        """Return the steps, float64[numeric attribute, STEP_FIELDS]."""
        words = ints[t + self.steps_at : t + self.nodes_at].view(np.float64)
        return words.reshape(-1, of.STEP_FIELDS)

    def nodes_of(self, ints: Ints, t: int) -> Ints:
        """Return all node records, int64[capacity, word]."""
        first = t + self.nodes_at
        capacity = ints.item(t + of.NODE_CAPACITY)
        return ints[first : first + capacity * self.node_words].reshape(capacity, self.node_words)

    def pages_of(self, ints: Ints, t: int) -> Ints:
        """Return all pages, int64[capacity, row, word]."""
        room = self.room(ints, t)
        first, end = t + self.words((room[NODES], 0, 0)), t + self.words(room)
        return ints[first:end].reshape(room[PAGES], of.PAGE_ROWS, self.row_words)

    def statistics(self, nodes: Ints) -> Floats:
        """Return the statistics of node records: float64[node, column, class of the pair, STATISTICS]."""
        words = nodes[:, self.statistics_at : self.unit_at].view(np.float64)
        return words.reshape(len(nodes), self.columns, 2, of.STATISTICS)

    def unit(self, nodes: Ints) -> Floats:
        """Return the units of node records: float64[node, 3, 1 + column]: w, β, h."""
        return nodes[:, self.unit_at :].view(np.float64).reshape(len(nodes), 3, 1 + self.columns)

    # Growing

    def grow(self, model: HasBlocks, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Make room for a record (place: node records that it may take), or return the events."""
        if reason == at.GROW_FIRST:
            self._extend(model, t, place)
            return []
        is_first = t == model.block_places[0]
        events = self._take_events(model.ints, t, row, index)
        return events if is_first else []

    def _extend(self, model: HasBlocks, t: int, wanted: int) -> None:
        """Compute how many words the block may take, and make nodes and pages half as many again."""
        ints = model.ints
        limit, node_words = self._reckon(model, t)
        nodes, pages, _ = self.live_room(ints, t)
        needed_pages = pages
        if nodes * node_words + (pages + 1) * self.page_words <= limit:
            needed_pages += 1
        fitting = max((limit - needed_pages * self.page_words) // node_words - nodes, 0)
        needed_nodes = nodes + min(wanted, fitting)
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

    def _reckon(self, model: HasBlocks, t: int) -> tuple[int, int]:
        """Return the words of all nodes and pages, and of a node record, for what the model has learned."""
        ints, plan = model.ints, model.plan
        seen = int(plan.ints[at.PLAN_VALUES_SEEN])
        values = int(ints[seen : seen + len(self.dims.nominal)].sum())
        classes = ints.item(at.MODEL_CLASSES)
        limit = max(int(plan.learned_bytes(ints) // at.WORD) - self._places(classes)[-1], 1)
        node_words = self.node_words_of(values)
        ints[t + of.RECKONED] = classes + values
        ints[t + of.LIMIT], ints[t + of.LEARNED_NODE] = limit, node_words
        return limit, node_words

    def _take_events(self, ints: Ints, t: int, row: int, index: int) -> list[Event]:
        """Return the events that wait in a block, and clear them."""
        first, floats = t + self.events_at, ints.view(np.float64)
        found: list[Event] = []
        for number in range(ints.item(t + of.EVENTS)):
            event = first + number * of.EVENT_FIELDS
            kind, pair, node, depth, column = ints[event : event + of.EVENT_CUT].tolist()
            cut, best, second, bound, weight = floats[event + of.EVENT_CUT : event + of.EVENT_FIELDS].tolist()
            if kind == of.NO_ROOM:
                found.append(GrowthStopped(row, index, self.summary(ints, t).leaves))
            elif kind == of.SPLIT or kind == of.TIE:
                attribute, test, value = self.test_of(column, cut)
                found.append(
                    Split(
                        row=row,
                        model=index,
                        node=node + 1,
                        attribute=attribute,
                        test=test,
                        value=value,
                        merits=(best, second),
                        bound=bound,
                        n=weight,
                        reason="tie" if kind == of.TIE else "gap",
                        pair=pair_of(pair),
                        depth=depth,
                    )
                )
            else:
                found.append(
                    Drift(
                        row=row,
                        model=index,
                        level="drift",
                        detector=self.learner.drift.name,
                        error_rate=weight,
                        action="subtree pruned" if kind == of.PRUNED else "leaf began anew",
                        node=node + 1,
                        depth=depth,
                        pair=pair_of(pair),
                    )
                )
        ints[first : first + ints.item(t + of.EVENTS) * of.EVENT_FIELDS] = 0
        ints[t + of.EVENTS] = 0
        return found

    def test_of(self, column: int, cut: float) -> tuple[int, Kind, float]:
        """Return the attribute of a column, the kind of its test, and its threshold or value code."""
        numeric = len(self.dims.numeric)
        if column < numeric:
            return self.dims.numeric[column], "numeric", cut
        for attribute, (first, room) in self.dims.value_places.items():
            if first <= column - numeric < first + room:
                return attribute, "category", float(column - numeric - first)
        msg = f"column={column} must be one of {self.columns}"
        raise IndexError(msg)

    # Reading

    def summary(self, ints: Ints, t: int) -> BlockSummary:
        """Return the sum of the counts of all trees, and the largest depth."""
        live, trees = ints.item(t + of.LIVE), ints.item(t + of.TREES)
        records = self.nodes_of(ints, t)[: ints.item(t + of.NODES)]
        return BlockSummary(
            leaves=(live + trees) // 2,
            nodes=live,
            depth=int(records[:, of.NODE_DEPTH].max(initial=0)),  # 0 in free records
            splits=ints.item(t + of.SPLITS),
            attempts=ints.item(t + of.ATTEMPTS),
            growth_stopped=self.has_stopped(ints, t),
        )

    def nodes(self, ints: Ints, t: int) -> int:
        return ints.item(t + of.LIVE)

    def has_stopped(self, ints: Ints, t: int) -> bool:
        """Return whether bytes were lacking for a split or a tree."""
        return bool(ints[t + of.STOPPED])

    def takes_attributes(self, ints: Ints, t: int) -> bool:
        """Return whether no tree was split yet."""
        return not ints[t + of.SPLITS]

    def branch_of(self, schema: Schema, node: Ints, side: int) -> Branch:
        """Return the condition of one of an inner node's children (node: int64[word]; side 0: left)."""
        attribute, test, value = self.test_of(
            int(node[of.NODE_COLUMN]), float(node.view(np.float64)[of.NODE_CUT])
        )
        found = schema.attributes[attribute]
        if test == "numeric":
            return Branch(found.name, ">" if side else "<=", value)
        values = found.values
        name = values[int(value)] if value < len(values) else f"value {value:g}"
        return Branch(found.name, "=" if side else "!=", name)

    def explain(
        self, schema: Schema, ints: Ints, t: int, x: Floats, place: int | None = None
    ) -> tuple[Branch, ...]:
        """Return the branches of one tree, for the two classes with the largest scores; none without a tree.

        The other trees of the winner vote, too, but this tree prefers the winner to the runner-up.
        """
        shares = np.zeros(max(self.dims.classes, 1))
        jit.register(ints)
        winner = score(self.plan_words.ctypes.data, ints.ctypes.data, t, np.ascontiguousarray(x), shares)
        rivals = [c for c in range(int(ints[at.MODEL_CLASSES])) if c != winner]
        if not rivals:
            return ()
        runner_up = max(rivals, key=lambda c: (shares[c], -c))
        first, second = sorted((int(winner), runner_up))
        number = int(self.pairs(ints, t)[second * (second - 1) // 2 + first, of.ROOT])
        if number < 0:
            return ()
        records, found = self.nodes_of(ints, t), []
        floats = records.view(np.float64)
        while (node := records[number])[of.NODE_LEFT] >= 0:
            children = [int(node[of.NODE_LEFT]), int(node[of.NODE_RIGHT])]
            value = self.value_of(ints, x, int(node[of.NODE_COLUMN]))
            missing = value is None
            if value is None:
                came = floats[children, of.NODE_ROUTED].tolist()
                side = int(came[1] > came[0])
            else:
                side = int(value > floats[number, of.NODE_CUT])
            taken = self.branch_of(schema, node, side)
            found.append(Branch(taken.attribute, taken.operator, taken.value, missing))
            number = children[side]
        return tuple(found)

    def value_of(self, ints: Ints, x: Floats, column: int) -> float | None:
        """Return the value of a column in a record (x: float64[attribute]); None: missing."""
        attribute, test, code = self.test_of(column, 0.0)
        value = float(x[attribute])
        if test == "numeric":
            return value if math.isfinite(value) else None
        seen = ints[self.plan_words[at.PLAN_VALUES_SEEN] + self.dims.nominal.index(attribute)]
        return float(value == code) if 0.0 <= value < seen else None

    def outline(self, model: HasBlocks, t: int, depth: int | None) -> Iterator[Outline]:
        """Yield the forest as a node above all trees, then tree by tree, parents first.

        Nodes have the same numbers as in events; the forest has number 0.
        """
        ints, schema = model.ints, model.schema
        roots = self.pairs(ints, t)[:, of.ROOT]
        planted = [(pair, int(roots[pair])) for pair in np.flatnonzero(roots >= 0).tolist()]
        weights = self.classes(ints, t).view(np.float64)[:, of.CLASS_WEIGHT]
        ends = depth is not None and depth <= 0
        yield Outline(
            number=0,
            parent=-1,
            depth=0,
            branch=None,
            test=FOREST if planted else None,
            children=() if ends else tuple(root + 1 for _, root in planted),
            masses=tuple(weights.tolist()),
            majority=int(np.argmax(weights)) if weights.any() else None,
            routed=float(weights.sum()),
            leaves_below=self.summary(ints, t).leaves if ends and planted else 0,
        )
        if not ends:
            records = self.nodes_of(ints, t)
            for pair, root in planted:
                names = " | ".join(schema.classes[c] for c in pair_of(pair))
                yield from self._tree(schema, records, root, Branch("class", "in", names), depth)

    def _tree(
        self, schema: Schema, records: Ints, root: int, branch: Branch, depth: int | None
    ) -> Iterator[Outline]:
        """Yield the nodes of a tree, parents first, children from left to right."""
        floats = records.view(np.float64)
        stack: list[tuple[int, Branch]] = [(root, branch)]
        while stack:
            number, condition = stack.pop()
            node = records[number]
            first, second = pair_of(int(node[of.NODE_PAIR]))
            level = int(node[of.NODE_DEPTH]) + 1
            is_inner = bool(node[of.NODE_LEFT] >= 0)
            ends = depth is not None and level >= depth
            children: tuple[int, ...] = ()
            test: str | None = None
            if is_inner:
                test = self.test_of(int(node[of.NODE_COLUMN]), 0.0)[1]
            if is_inner and not ends:
                children = (int(node[of.NODE_LEFT]) + 1, int(node[of.NODE_RIGHT]) + 1)
                stack += [(children[side] - 1, self.branch_of(schema, node, side)) for side in (1, 0)]
            masses = [0.0] * self.dims.classes
            masses[first], masses[second] = floats[number, of.NODE_WEIGHT : of.NODE_WEIGHT + 2].tolist()
            parent = int(node[of.NODE_PARENT])
            yield Outline(
                number=number + 1,
                parent=parent + 1,
                depth=level,
                branch=condition,
                test=test,
                children=children,
                masses=tuple(masses),
                majority=(first if masses[first] >= masses[second] else second) if any(masses) else None,
                routed=float(floats[number, of.NODE_ROUTED]),
                leaves_below=_leaves(records, number) if is_inner and ends else 0,
            )


def pair_of(number: int) -> tuple[int, int]:
    """Return the classes i < j of a pair's number."""
    j = (1 + math.isqrt(1 + 8 * number)) // 2
    return number - j * (j - 1) // 2, j


def _leaves(records: Ints, number: int) -> int:
    """Return the number of leaves below a node."""
    waiting, found = [number], 0
    while waiting:
        node = records[waiting.pop()]
        if node[of.NODE_LEFT] >= 0:
            waiting += [int(node[of.NODE_LEFT]), int(node[of.NODE_RIGHT])]
        else:
            found += 1
    return found
