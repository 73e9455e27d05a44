"""BOCT, the obvious way: every leaf is a list of rows, all cuts are scored after every label.

Bounds come from scipy's incomplete beta function by bisection (BCI, section III).
"""

import functools
import importlib
import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.naive.observers import is_missing
from tests.naive.queries import DRAWS, QUERY_DECISION, Place, uniform
from tests.naive.tree import Split

bisect = importlib.import_module("scipy.optimize").bisect
special = importlib.import_module("scipy.special")

RESERVOIR = 9
LN2 = math.log(2.0)


@functools.cache
def middle_tail(labels, fewer, q):
    """Return the s with P(s <= µ <= 1 - s) = q for µ from Beta(fewer + 1, labels - fewer + 1)."""
    a, b = fewer + 1, labels - fewer + 1
    return float(
        bisect(
            lambda s: special.betainc(a, b, s) + special.betainc(b, a, s) - (1.0 - q), 0.0, 0.5, xtol=1e-15
        )
    )


def heterogeneity(kind, s):
    if kind == "variance":
        return s * (1 - s)
    if kind == "stddev":
        return math.sqrt(s * (1 - s))
    return -sum(share * math.log(share) for share in (s, 1 - s) if share > 0)


def bounds(options, labels, positives):
    """Return the upper and the lower bound of a leaf's heterogeneity."""
    fewer = min(positives, labels - positives)
    if options["bound"] == "credible":
        return tuple(
            heterogeneity(options["heterogeneity"], middle_tail(labels, fewer, q))
            for q in (options["delta"], 1 - options["delta"])
        )
    entropy = heterogeneity("entropy", fewer / labels) / LN2
    width = math.sqrt(math.log(1 / options["delta"]) / (2 * labels))
    return entropy + (width if options["bound"] == "three-interval" else 0.0), entropy - width


@dataclass(eq=False)
class Node:
    """A leaf until it has children."""

    depth: int = 0
    labelled: list[Any] = field(default_factory=list)  # (x, label)
    unlabelled: list[Any] = field(default_factory=list)  # x
    observed: float = 0.0
    routed: float = 0.0  # at leaves
    test: object = None
    children: list[Any] = field(default_factory=list)

    @property
    def rows(self):
        return [x for x, _ in self.labelled] + self.unlabelled

    @property
    def positives(self):
        return sum(label for _, label in self.labelled)

    def all_routed(self):
        return self.routed + sum(child.all_routed() for child in self.children)

    def leaves(self):
        return [leaf for child in self.children for leaf in child.leaves()] if self.children else [self]


class Boct:
    attempts = 0

    def __init__(self, options):
        self.options = options
        self.learner = options.shared["learner"]
        self.seed = options.shared["seed"]
        self.kinds = options.attributes
        self.classes = options.classes
        self.root = Node()
        self.records = self.clock = 0  # clock: records, or labels, that the model has seen before
        self.labels = 0
        self.splits = 0
        self.numbers = [self.root]

    # Where records go

    def side(self, node, x):
        """Return 0 or 1: where a test sends a record; what is missing goes where most records went."""
        column, kind, value = node.test
        if is_absent(x[column], self.kinds[column]):
            one, two = (child.all_routed() for child in node.children)
            return 0 if one >= two else 1
        return int(not (x[column] <= value if kind == "numeric" else x[column] == value))

    def leaf(self, x):
        node = self.root
        while node.children:
            node = node.children[self.side(node, x)]
        return node

    def count(self, x, weight=1.0):
        """Count a record that comes with its label, and that another tree has answered."""
        self.leaf(x).routed += 1

    def visit(self, x, weight=1.0):
        leaf, learner = self.leaf(x), self.learner
        if learner["sizes"] in ("stream", "pool"):
            n = len(leaf.labelled) + len(leaf.unlabelled)
            if learner["sizes"] == "pool" or n < learner["capacity"]:
                leaf.unlabelled.append(x)
            elif leaf.unlabelled:
                came = max(leaf.routed + 1 - leaf.observed, len(leaf.unlabelled))
                place = uniform(self.seed, RESERVOIR, self.clock * DRAWS) * came
                if place < len(leaf.unlabelled):
                    leaf.unlabelled[int(place)] = x
        leaf.routed += 1

    # Learning

    def learn(self, x, label, weight=1.0):
        self.classes = max(self.classes, label + 1)
        leaf, learner = self.leaf(x), self.learner
        rows, counter = len(leaf.labelled) + len(leaf.unlabelled), self.clock * DRAWS + DRAWS // 2
        self.labels += 1
        leaf.observed += 1
        alike = [i for i, row in enumerate(leaf.unlabelled) if self.same(row, x)]
        full = learner["sizes"] != "pool" and rows >= learner["capacity"]
        if alike:
            take(leaf.unlabelled, alike[-1])
        elif full and leaf.unlabelled:
            take(leaf.unlabelled, int(uniform(self.seed, RESERVOIR, counter) * len(leaf.unlabelled)))
        elif full:
            place = uniform(self.seed, RESERVOIR, counter) * max(leaf.observed, len(leaf.labelled))
            if place < len(leaf.labelled):
                leaf.labelled[int(place)] = (x, label)
            return self.update(leaf) if place < len(leaf.labelled) else []
        elif leaf.unlabelled:
            leaf.unlabelled.append(leaf.unlabelled.pop(0))
        leaf.labelled.append((x, label))
        return self.update(leaf)

    def same(self, one, other):
        return all(
            a == b or (is_absent(a, kind) and is_absent(b, kind))
            for a, b, kind in zip(one, other, self.kinds, strict=True)
        )

    def update(self, leaf):
        """Split a leaf if a cut wins, and look at its branches at once; return the splits."""
        score, column, kind, value = self.best_cut(leaf)
        if not score < bounds(self.learner, len(leaf.labelled), leaf.positives)[1]:
            return []
        splits = [Split(column, kind, value, float(len(leaf.labelled)))]
        left = self.missing_side(leaf, column, kind, value) == 0
        leaf.test = (column, kind, value)

        def goes_left(x):
            if is_absent(x[column], self.kinds[column]):
                return left
            return x[column] <= value if kind == "numeric" else x[column] == value

        n = len(leaf.labelled) + len(leaf.unlabelled)
        for branch in (True, False):
            child = Node(leaf.depth + 1)
            child.labelled = [row for row in leaf.labelled if goes_left(row[0]) == branch]
            child.unlabelled = [x for x in leaf.unlabelled if goes_left(x) == branch]
            child.routed = leaf.routed * ((len(child.labelled) + len(child.unlabelled)) / n)
            child.observed = len(child.labelled) * (leaf.observed / len(leaf.labelled))
            leaf.children.append(child)
        self.numbers += leaf.children
        leaf.routed = 0.0
        self.splits += 1
        for child in leaf.children:
            splits += self.update(child)
        return splits

    def missing_side(self, leaf, column, kind, value):
        there = [x[column] for x in leaf.rows if not is_absent(x[column], self.kinds[column])]
        one = sum(v <= value if kind == "numeric" else v == value for v in there)
        return 0 if one >= len(there) - one else 1

    def best_cut(self, leaf):
        """Return (score, column, kind, value) of the best cut, the first of equal ones."""
        best: tuple[Any, ...] = (math.inf, None, None, None)
        for column, values in enumerate(self.kinds):
            for kind, value in self.cuts(leaf, column, values):
                score = self.score(leaf, column, kind, value)
                if score < best[0]:
                    best = (score, column, kind, value)
        return best

    def cuts(self, leaf, column, values):
        seen = sorted({x[column] for x, _ in leaf.labelled if not is_absent(x[column], values)})
        if values is not None:
            known = [value for value in seen if value < values or column in self.options.open]
            return [("binary", float(value)) for value in known] if len(seen) > 1 else []
        return [("numeric", middle(a, b)) for a, b in itertools.pairwise(seen)]

    def score(self, leaf, column, kind, value):
        values = np.array([x[column] for x in leaf.rows])
        label = np.array([label for _, label in leaf.labelled] + [-1] * len(leaf.unlabelled))
        left = values <= value if kind == "numeric" else values == value
        absent = np.array([is_absent(v, self.kinds[column]) for v in values.tolist()])
        left[absent] = self.missing_side(leaf, column, kind, value) == 0
        score = 0.0
        for side in (left, ~left):
            labels, positives = int((side & (label >= 0)).sum()), int((side & (label == 1)).sum())
            score += int(side.sum()) * bounds(self.learner, labels, positives)[0]
        return score / len(values)

    # Answers

    def predict(self, x):
        leaf = self.leaf(x)
        n, positives = len(leaf.labelled), leaf.positives
        votes = [(n - positives) / n, positives / n] if n else []
        if not self.classes:
            return -1, votes
        return int(self.classes > 1 and self.labels > 0 and 2 * positives >= n), votes

    def shares(self, x):
        """Return the class shares of the leaf's labels."""
        return self.predict(x)[1]

    def place(self, x):
        leaf = self.leaf(x)
        masses = [len(leaf.labelled) - leaf.positives, leaf.positives]
        return LeafPlace(masses, masses, self.classes, tree=self, leaf=leaf)


@dataclass
class LeafPlace(Place):
    """A place that knows all leaves."""

    tree: Boct | None = None
    leaf: Node | None = None


class BoctAl:
    """Water filling over the leaves, shared out anew once for as many records as there are leaves."""

    def __init__(self, seed, delta=0.05, explore=0.1):
        self.seed = seed
        self.delta = delta
        self.explore = explore
        self.due = self.leaves = 0
        self.shared = {}

    def chance(self, t, place, limit):
        floor = self.explore * limit
        leaves = place.tree.root.leaves()
        if len(leaves) == 1:
            return limit
        if t >= self.due or len(leaves) != self.leaves or id(place.leaf) not in self.shared:
            self.shared = self.share_out(place.tree, leaves, limit, floor)
            self.due, self.leaves = t + len(leaves), len(leaves)
        return self.shared[id(place.leaf)] if floor > 0 else None

    def share_out(self, tree, leaves, limit, floor):
        scores = {id(leaf): leaf.routed * self.risk(leaf) for leaf in leaves}
        order = sorted(leaves, key=lambda leaf: (-scores[id(leaf)], tree.numbers.index(leaf)))
        total = sum(leaf.routed for leaf in leaves)
        left, chance_of = (limit - floor) / (1 - floor) * total, {}
        for leaf in order:
            taken = min(leaf.routed, left)
            chance_of[id(leaf)] = floor + (1 - floor) * (taken / leaf.routed if leaf.routed else 0.0)
            left -= taken
        return chance_of

    def risk(self, leaf):
        n = len(leaf.labelled)
        return risk_bound(n, min(leaf.positives, n - leaf.positives), self.delta)

    def decide(self, t, place, limit):
        chance = self.chance(t, place, limit)
        chance = self.shared[id(place.leaf)] if chance is None else chance
        draw = uniform(self.seed, QUERY_DECISION, t * DRAWS)
        if draw < self.explore * limit or (len(place.tree.root.leaves()) == 1 and draw < limit):
            return "random"
        return "yes" if draw < chance else "no"


@functools.cache
def risk_bound(labels, errors, delta):
    """Return what the risk exceeds with probability delta, by bisection (equation 7)."""
    return float(special.betaincinv(errors + 1, labels - errors + 1, 1 - delta))


def take(rows, position):
    """Take a row out; the first comes into its place."""
    rows[position] = rows[0]
    del rows[0]


def is_absent(value, values):
    return is_missing(value) or (values is not None and value < 0)


def middle(one, other):
    halfway = 0.5 * one + 0.5 * other
    return halfway if one <= halfway < other else one
