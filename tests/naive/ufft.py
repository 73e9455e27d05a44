"""UFFT, the obvious way: a list of records a tree, objects for nodes, the formulas of section 22."""

import math
from dataclasses import dataclass, field
from typing import Any

from tests.naive.baselines import Baseline
from tests.naive.detectors import DETECTORS
from tests.naive.queries import Place

LABELS_APART = 265


@dataclass
class Moments:
    """Weight, mean and squared deviations of the values of one class."""

    n: float = 0.0
    mean: float = 0.0
    m2: float = 0.0

    def add(self, x, w):
        self.n += w
        delta = x - self.mean
        self.mean += w * delta / self.n
        self.m2 += w * delta * (x - self.mean)

    @property
    def sd(self):
        return math.sqrt(max(self.m2, 0.0) / (self.n - 1.0)) if self.n > 1.0 else 0.0


@dataclass
class Change:
    """A split, as the comparison wants it."""

    attribute: int
    kind: str
    value: float
    weight: float


@dataclass
class Unit:
    """Sutton's linear unit with a step size for each input."""

    w: list[float]
    beta: list[float]
    h: list[float]

    def output(self, inputs):
        return sum(w * x for w, x in zip(self.w, inputs, strict=True))

    def learn(self, inputs, target, share):
        delta = target - self.output(inputs)
        for i, x in enumerate(inputs):
            self.beta[i] = min(max(self.beta[i] + share * 0.01 * delta * x * self.h[i], -10.0), 0.0)
        overshoot = sum(math.exp(b) * x * x for b, x in zip(self.beta, inputs, strict=True))
        shrink = max(overshoot, 1.0)
        for i, x in enumerate(inputs):
            if not x:
                continue  # it had no part in the overshoot
            a = share * math.exp(self.beta[i]) / shrink
            step = a * delta * x
            self.w[i] += step
            self.h[i] = self.h[i] * max(0.0, 1.0 - a * x * x) + step
            self.beta[i] = max(self.beta[i] - math.log(shrink), -10.0)


@dataclass(eq=False)
class Node:
    """A node keeps learning after its split."""

    depth: int
    detector: Any
    unit: Unit
    due: float
    routed: float = 0.0
    weight: list[float] = field(default_factory=lambda: [0.0, 0.0])
    values: dict[Any, tuple[Moments, Moments]] = field(default_factory=dict)
    warning: int | None = None
    test: Any = None  # column and cut
    children: Any = None

    def moments(self, column):
        """Return the statistics of a column; of a value without a record: 0 in all records with another."""
        if column in self.values or not isinstance(column, tuple):
            return self.values.setdefault(column, (Moments(), Moments()))
        others = self.values.get((column[0], None), (Moments(), Moments()))
        return Moments(others[0].n), Moments(others[1].n)

    def add(self, cells, side, w):
        self.weight[side] += w
        for column, value in cells.items():
            if column not in self.values:
                one, other = self.moments(column)
                self.values[column] = (Moments(one.n), Moments(other.n))
            self.values[column][side].add(value, w)

    def odds(self, cells, least):
        """Return ln P(0|x) - ln P(1|x) of its naive Bayes; least: smallest deviation by column."""
        first, second = self.weight
        if not first or not second:
            return (first > 0.0) * math.inf if first >= second else -math.inf if second else 0.0
        terms = [math.log(first / second)]
        for column, value in cells.items():
            classes = self.moments(column)  # of a value's None: 0 in all, which says nothing
            if min(self.weight) >= 2.0 and min(m.n for m in classes) >= 2.0:
                for sign, m in zip((1.0, -1.0), classes, strict=True):
                    sd = max(m.sd, 1e-9 * max(1.0, abs(m.mean)), least(column))
                    terms += [-sign * math.log(sd), -sign * 0.5 * (value - m.mean) ** 2 / (sd * sd)]
        return math.fsum(terms)

    def inputs(self, cells, columns):
        inputs = [1.0]
        for column in columns:
            both = Moments()
            for m in self.moments(column):
                if m.n > 0.0:
                    n, delta = both.n + m.n, m.mean - both.mean
                    both = Moments(
                        n, both.mean + delta * m.n / n, both.m2 + m.m2 + delta**2 * both.n * m.n / n
                    )
            score = (cells[column] - both.mean) / both.sd if column in cells and both.sd > 0.0 else 0.0
            inputs.append(min(max(score, -5.0), 5.0))
        return inputs


def discriminant(p, one, q, other):
    """Return the cut between two classes with these priors, None if there is none (section 22.3)."""
    s, r = one.sd, other.sd
    if s == 0.0 or r == 0.0:
        return (one.mean + other.mean) / 2 if s != r or one.mean != other.mean else None
    a = 0.5 * (1 / r**2 - 1 / s**2)
    b = one.mean / s**2 - other.mean / r**2
    c = 0.5 * (other.mean**2 / r**2 - one.mean**2 / s**2) + math.log(p * r / (q * s))
    if abs(a) < 1e-12 * (1 / s**2 + 1 / r**2):
        return -c / b if b else None
    if b * b - 4 * a * c < 0.0:
        return None
    stable = -0.5 * (b + math.copysign(math.sqrt(b * b - 4 * a * c), b))
    roots = sorted([stable / a, c / stable if stable else stable / a])
    apart = [abs(x - one.mean) + abs(x - other.mean) for x in roots]
    return roots[1] if apart[1] < apart[0] - 1e-9 * (1 + apart[0]) else roots[0]


def entropy(*masses):
    total = sum(masses)
    return -sum(m / total * math.log2(m / total) for m in masses if m > 0.0) if total else 0.0


def left_share(m, cut):
    """Return the share of a class at or below a cut by its normal distribution."""
    return 0.5 * math.erfc(-(cut - m.mean) / m.sd / math.sqrt(2.0)) if m.sd else float(m.mean <= cut)


def gain(p, one, q, other, cut):
    """Return the information gain of the table that the normal distributions make."""
    table = []
    for mass, m in ((p / (p + q), one), (q / (p + q), other)):
        left = left_share(m, cut)
        table.append((mass * left, mass * (1.0 - left)))
    after = sum(sum(branch) * entropy(*branch) for branch in zip(*table, strict=True))
    return max(entropy(p, q) - after, 0.0)


class Tree:
    """The tree of two classes, and what it remembers."""

    def __init__(self, forest, classes):
        self.forest = forest
        self.classes = classes
        self.memory = []  # (arrival, x, side, weight)
        self.root = self.leaf(0)

    def leaf(self, depth, parent=None):
        given = dict(self.forest.given["drift"])
        n = 1 + len(self.forest.columns())
        unit = Unit([0.0] * n, [math.log(0.05)] * n, [0.0] * n)
        if parent is not None:
            unit = Unit(list(parent.unit.w), list(parent.unit.beta), [0.0] * n)
        return Node(depth, DETECTORS[given.pop("name")](**given), unit, self.first_wait())

    def first_wait(self):
        return LABELS_APART if self.forest.given["nmin"] == "slide" else 100

    def child(self, node, cells):
        column, cut = node.test
        if column not in cells:
            return node.children[node.children[1].routed > node.children[0].routed]
        return node.children[cells[column] > cut]

    def path(self, cells):
        path = [self.root]
        while path[-1].children:
            path.append(self.child(path[-1], cells))
        return path

    def share(self, cells):
        """Return the probability of the first class."""
        voters = [node for node in self.path(cells) if sum(node.weight) > 0.0]
        if not voters:
            return 0.5
        node, model = voters[-1], self.forest.given["leaf_model"]
        if model == "mc":
            return node.weight[0] / sum(node.weight)
        if model == "idbd":
            return min(max(node.unit.output(node.inputs(cells, self.forest.columns())), 0.0), 1.0)
        odds = node.odds(cells, self.forest.least)
        return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0

    def learn(self, arrival, x, side, weight):
        given, cells = self.forest.given, self.forest.cells(x)
        self.memory.append((arrival, x, side, weight))
        self.memory = self.memory[max(len(self.memory) - given["memory"], 0) :]
        path = self.path(cells)
        for node in path:
            node.routed += weight
            error = 0 if (node.odds(cells, self.forest.least) < 0.0) == (side == 1) else 1
            level = node.detector.update(error)
            if level == "warning":
                node.warning = arrival if node.warning is None else node.warning
            elif level == "in-control":
                node.warning = None
            else:
                self.restart(node, (arrival, x, side, weight))
                return None
            if node is path[-1] and given["leaf_model"] == "idbd":
                inputs = node.inputs(cells, self.forest.columns())
                node.unit.learn(inputs, 1 - side, min(weight, 1.0))
            node.add(cells, side, weight)
        return self.evaluate(path[-1])

    def restart(self, node, record):
        self.forest.restarts += 1
        since = record[0] if node.warning is None else node.warning
        rows = [row for row in self.memory or [record] if row[0] >= since]
        reaching = [
            row for row in rows if any(node is passed for passed in self.path(self.forest.cells(row[1])))
        ]
        routed, fresh = node.routed, self.leaf(node.depth)
        vars(node).update(vars(fresh))
        node.routed = routed
        for _, x, side, weight in reaching:
            node.add(self.forest.cells(x), side, weight)
        node.due = sum(node.weight) + self.first_wait()

    def evaluate(self, leaf):
        given, n = self.forest.given, sum(leaf.weight)
        if n < leaf.due or not all(leaf.weight):
            return None
        self.forest.attempts += 1
        best_of: dict[int, Any] = {}  # by attribute
        for column in self.forest.columns():
            one, other = leaf.moments(column)
            if min(one.n, other.n) >= 2.0:
                cut = discriminant(one.n, one, other.n, other)
                if cut is not None and (not isinstance(column, tuple) or 0.0 <= cut < 1.0):
                    its = gain(one.n, one, other.n, other, cut)
                    attribute = column[0] if isinstance(column, tuple) else column
                    if its > best_of.get(attribute, (0.0,))[0] * (1 + 1e-9):
                        best_of[attribute] = (its, column, cut)
        ranked = sorted(best_of.values(), key=lambda candidate: -candidate[0])
        best, second = (ranked[i][0] if i < len(ranked) else 0.0 for i in (0, 1))
        gap = best - second
        bound = math.sqrt(math.log(1 / given["delta"]) / (2 * n))
        if given["nmin"] == "slide":
            leaf.due = n + LABELS_APART
        else:
            needed = math.ceil(math.log(2 / given["delta"]) / (2 * gap * gap)) if gap > 1e-9 else math.inf
            leaf.due = n + min(max(needed - n, 100), 2000)
        if best < 1e-10 or not (gap > bound or gap < bound < given["tau"]):
            return None
        _, column, cut = ranked[0]
        rows = [(self.forest.cells(x), side, weight) for _, x, side, weight in self.memory]
        reaching = [row for row in rows if self.path(row[0])[-1] is leaf]
        if given["memory"]:
            values = [row[0][column] for row in reaching if column in row[0]]
            left, right = sum(v <= cut for v in values), sum(v > cut for v in values)
        else:
            shares = [(m.n, left_share(m, cut)) for m in leaf.moments(column)]
            left, right = sum(n * s for n, s in shares), sum(n * (1.0 - s) for n, s in shares)
        if left < 1 or right < 1:
            return None
        leaf.test = (column, cut)
        leaf.children = (self.leaf(leaf.depth + 1, leaf), self.leaf(leaf.depth + 1, leaf))
        for cells, side, weight in reaching:
            child = self.child(leaf, cells)
            child.routed += weight
            child.add(cells, side, weight)
        for child in leaf.children:
            child.due = sum(child.weight) + self.first_wait()
        self.forest.splits += 1
        if isinstance(column, tuple):
            return Change(column[0], "binary", column[1], n)
        return Change(column, "numeric", cut, n)


class Ufft(Baseline):
    """The forest: trees by pair of classes."""

    def __init__(self, options):
        super().__init__(options)
        self.given = options.shared["learner"]
        self.trees = {}
        self.splits = self.attempts = self.restarts = self.arrivals = 0
        self.met: dict[int, float] = {}  # the last value of each numeric attribute
        self.step: dict[int, float] = {}  # and its smallest difference from the one before

    def columns(self):
        """Return the columns: an attribute, or an attribute and one of its values."""
        kinds = list(enumerate(self.options.attributes))
        numeric = [attribute for attribute, values in kinds if values is None]
        return numeric + [(a, v) for a, values in kinds if values is not None for v in range(values)]

    def cells(self, x):
        """Return the values of the columns that are not missing, and that an attribute has some value."""
        cells: dict[Any, float] = {}
        for attribute, values in enumerate(self.options.attributes):
            value = x[attribute]
            if values is None:
                if math.isfinite(value):
                    cells[attribute] = value
            elif 0.0 <= value < values:
                cells |= {(attribute, v): float(v == value) for v in range(values)}
                cells[attribute, None] = 0.0  # behind them: it counts the records before, for values to come
        return cells

    def scores(self, x):
        met = [c for c, weight in enumerate(self.weights) if weight > 0.0]
        if len(met) < 2:
            return [float(c in met) for c in range(self.classes)]
        cells, votes = self.cells(x), [0.0] * self.classes
        for j in range(self.classes):
            for i in range(j):
                share = self.trees[i, j].share(cells) if (i, j) in self.trees else 0.5
                votes[i] += share
                votes[j] += 1.0 - share
        return votes

    def votes(self, x):
        return self.scores(x)

    def least(self, column):
        """Return the smallest deviation of a class: a share of the step, 1 of a nominal value."""
        step = 1.0 if isinstance(column, tuple) else self.step.get(column, 0.0)
        return self.given["step_share"] * step

    def take_in(self, x, label, weight):
        changes = []
        for attribute, values in enumerate(self.options.attributes):
            if values is None and math.isfinite(x[attribute]):
                before = self.met.get(attribute, x[attribute])
                if abs(x[attribute] - before) > 1e-9 * max(abs(x[attribute]), abs(before)):
                    distance = abs(x[attribute] - before)
                    self.step[attribute] = min(self.step.get(attribute, distance), distance)
                self.met[attribute] = x[attribute]
        for other, known in enumerate(self.weights):
            if other != label and known > 0.0:
                pair = (min(label, other), max(label, other))
                if pair not in self.trees:
                    self.trees[pair] = Tree(self, pair)
                changes.append(self.trees[pair].learn(self.arrivals, x, int(label > other), weight))
        self.arrivals += 1
        self.changes = changes

    def learn(self, x, label, weight=1.0):
        super().learn(x, label, weight)
        return self.changes

    def shares(self, x):
        return self.place(x).shares or []

    def place(self, x):
        """Strategies go by the fused shares, and the weight of all that it has learned."""
        scores, labelled = self.scores(x), sum(self.weights)
        if not sum(scores):
            return Place([], [], self.classes, labelled=labelled)
        met = sum(weight > 0.0 for weight in self.weights)
        # A tree's two shares are 1 together, so all are the number of pairs; their rounded sum may not be.
        pairs = self.classes * (self.classes - 1) / 2 if met > 1 else 1.0
        shares = [score / pairs for score in scores]
        observed = [share * labelled for share in shares]
        return Place(shares, observed, self.classes, labelled=labelled, shares=shares)
