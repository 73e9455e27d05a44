"""Attribute observers, the obvious way.

Class distributions are lists of weights by class code. They end at the highest class that was ever touched,
also with weight 0: MOA's range of information gain is the logarithm of that length.
"""

import math
from decimal import Decimal, getcontext
from itertools import pairwise

from tests.naive import cephes


def add(distribution, position, weight):
    """Add weight at a position of a list that grows as needed."""
    while len(distribution) <= position:
        distribution.append(0.0)
    distribution[position] += weight


def is_missing(value):
    return math.isnan(value)


class Gaussian:
    """Weight, mean, squared deviations, smallest and largest value per class; evenly spaced thresholds."""

    def __init__(self, bins=10, moa=False):
        self.bins = bins
        self.moa = moa
        self.weight = {}
        self.mean = {}
        self.m2 = {}
        self.low = {}
        self.high = {}

    def observe(self, value, label, weight):
        if is_missing(value):
            return
        if label not in self.weight:
            self.weight[label] = 0.0
            self.mean[label] = value
            self.m2[label] = 0.0
            self.low[label] = value
            self.high[label] = value
        self.low[label] = min(self.low[label], value)
        self.high[label] = max(self.high[label], value)
        self.weight[label] += weight
        delta = value - self.mean[label]
        self.mean[label] += weight * delta / self.weight[label]
        self.m2[label] += weight * delta * (value - self.mean[label])

    def deviation(self, label):
        weight = self.weight[label]
        return math.sqrt(self.m2[label] / (weight - 1.0)) if weight > 1.0 else 0.0

    def density(self, value, label):
        if label not in self.weight:
            return 0.0
        deviation = self.deviation(label)
        if deviation > 0.0:
            distance = value - self.mean[label]
            scale = 1.0 / (math.sqrt(2.0 * math.pi) * deviation)
            return scale * math.exp(-(distance * distance / (2.0 * deviation * deviation)))
        return 1.0 if value == self.mean[label] else 0.0

    def class_totals(self, classes):
        return [self.weight.get(label, 0.0) for label in range(classes)]

    def candidates(self):
        if not self.weight:
            return []
        low, high = min(self.low.values()), max(self.high.values())
        thresholds = []
        for i in range(1, self.bins + 1):
            value = (high - low) / (self.bins + 1.0) * i + low
            if low < value < high and value not in thresholds:
                thresholds.append(value)
        return sorted(thresholds)

    def branches(self, threshold):
        """Return the class distributions at or below the threshold and above it."""
        left: list[float] = []
        right: list[float] = []
        for label in sorted(self.weight):
            weight = self.weight[label]
            if threshold < self.low[label]:
                add(right, label, weight)
            elif threshold >= self.high[label]:
                add(left, label, weight)
            else:
                at_or_below, above = self.masses(threshold, label)
                add(left, label, at_or_below)
                add(right, label, above)
        return [left, right]

    def masses(self, threshold, label):
        weight, mean, deviation = self.weight[label], self.mean[label], self.deviation(label)
        if self.moa:
            return self.moa_masses(threshold, label)
        if deviation > 0.0:
            below = weight * 0.5 * math.erfc(-(threshold - mean) / deviation / math.sqrt(2.0))
        else:
            below = weight if threshold >= mean else 0.0
        return below, max(weight - below, 0.0)

    def moa_masses(self, threshold, label):
        """Return the same with MOA's rounding: it takes the density at the threshold out and puts it back.

        Without a deviation its lower part is the wrong way round.
        """
        weight, mean, deviation = self.weight[label], self.mean[label], self.deviation(label)
        equal = self.density(threshold, label) * weight
        if deviation > 0.0:
            below = cephes.normal_cdf((threshold - mean) / deviation) * weight - equal
        else:
            below = weight - equal if threshold < mean else 0.0
        return below + equal, max(weight - equal - below, 0.0)


class Qda(Gaussian):
    """The same statistics; thresholds where a class and all others together are equally likely."""

    def candidates(self):
        classes = sorted(self.weight)
        cuts = [self.cut(label, [other for other in classes if other != label]) for label in classes]
        return sorted({value for value in cuts if value is not None})

    def cut(self, label, others):
        """Return the threshold between a class and others together, None if there is none (section 22.3)."""
        getcontext().prec = 50
        n, mean, m2 = (Decimal(column[label]) for column in (self.weight, self.mean, self.m2))
        nothing = Decimal(0)
        weight = sum((Decimal(self.weight[other]) for other in others), nothing)
        if n < 2 or weight < 2:
            return None
        sums = (Decimal(self.weight[other]) * Decimal(self.mean[other]) for other in others)
        pooled = sum(sums, nothing) / weight
        if len({self.mean[other] for other in others}) == 1:
            pooled = Decimal(self.mean[others[0]])
        squares = Decimal(0)
        for other in others:
            apart = Decimal(self.mean[other]) - pooled
            squares += Decimal(self.m2[other]) + Decimal(self.weight[other]) * apart * apart
        if m2 == 0 or squares == 0:
            same = m2 == squares and mean == pooled
            return None if same else float((mean + pooled) / 2)
        variances = m2 / (n - 1), squares / (weight - 1)
        a = (1 / variances[1] - 1 / variances[0]) / 2
        b = mean / variances[0] - pooled / variances[1]
        c = (pooled**2 / variances[1] - mean**2 / variances[0]) / 2
        c += (n / weight * (variances[1] / variances[0]).sqrt()).ln()
        if abs(a) < Decimal("1e-12") * (1 / variances[0] + 1 / variances[1]):
            return None if b == 0 else float(-c / b)
        if b * b < 4 * a * c:
            return None
        roots = sorted((sign * (b * b - 4 * a * c).sqrt() - b) / (2 * a) for sign in (-1, 1))
        far = [abs(root - mean) + abs(root - pooled) for root in roots]
        tie = Decimal("1e-9") * (max(variances).sqrt() + min(far))
        return float(roots[1] if far[1] < far[0] - tie else roots[0])

    def branches(self, threshold):
        left: list[float] = []
        right: list[float] = []
        for label in sorted(self.weight):
            at_or_below, above = self.masses(threshold, label)
            add(left, label, at_or_below)
            add(right, label, above)
        return [left, right]


class Nominal:
    """Weight per class and value; ``sizes[attribute]`` is the number of values known now."""

    def __init__(self, sizes, attribute, moa=False):
        self.sizes = sizes
        self.attribute = attribute
        self.moa = moa
        self.counts = {}

    @property
    def values(self):
        return self.sizes[self.attribute]

    def observe(self, value, label, weight):
        if is_missing(value) or not 0 <= value < self.values:
            return
        add(self.counts.setdefault(label, []), int(value), weight)

    def density(self, value, label):
        counts = self.counts.get(label, [])
        code = int(value)
        weight = counts[code] if code < len(counts) else 0.0
        if self.moa:
            return (weight + 1.0) / (sum(counts) + len(counts)) if counts else 0.0
        return (weight + 1.0) / (sum(counts) + self.values)

    def class_totals(self, classes):
        return [sum(self.counts.get(label, [])) for label in range(classes)]

    def seen(self):
        """Return one more than the largest value code seen."""
        return max((len(counts) for counts in self.counts.values()), default=0)

    def multiway(self):
        """Return one class distribution per value: declared ones, or for MOA up to the largest seen."""
        branches: list[list[float]] = [[] for _ in range(self.seen() if self.moa else self.values)]
        for label in sorted(self.counts):
            for value, weight in enumerate(self.counts[label]):
                add(branches[value], label, weight)
        return branches

    def branches(self, value):
        """Return the class distributions equal to a value and all others."""
        equal: list[float] = []
        other: list[float] = []
        for label in sorted(self.counts):
            for code, weight in enumerate(self.counts[label]):
                add(equal if code == value else other, label, weight)
        return [equal, other]

    def candidates(self):
        return range(self.seen() if self.moa else self.values)


class Histogram:
    """Weight per class and bin; ``values``, shared by all leaves, holds the attribute's first values."""

    def __init__(self, options, values, ends=None):
        self.options = options
        self.low, self.high = ends or (options.low, options.high)
        self.values = values
        self.counts = {}

    def edges(self):
        """Return the edges, None before the attribute has shown enough values."""
        bins, n = self.options.bins, self.options.warm_up
        if self.options.edges == "range":
            shares = [(i + 1.0) / bins for i in range(bins - 1)]
            return [self.low * (1.0 - share) + self.high * share for share in shares]
        if len(self.values) < n:
            return None
        edges, ordered = [], sorted(self.values)
        for j in range(1, bins):
            i = j * n // bins
            if i == 0:
                continue
            edge = (ordered[i - 1] + ordered[i]) / 2.0
            if edge < ordered[-1] and edge not in edges:
                edges.append(edge)
        return edges

    def observe(self, value, label, weight):
        """Count a value; return False if it goes to the edges instead."""
        if is_missing(value):
            return True
        edges = self.edges()
        if edges is None:
            self.values.append(value)
            return False
        add(self.counts.setdefault(label, []), self.bin(value, edges), weight)
        return True

    def bin(self, value, edges):
        return sum(edge < value for edge in edges)

    def density(self, value, label):
        edges = self.edges()
        if edges is None:
            return 1.0
        counts, own = self.counts.get(label, []), self.bin(value, edges)
        weight = counts[own] if own < len(counts) else 0.0
        return (weight + 1.0) / (sum(counts) + self.options.bins)

    def class_totals(self, classes):
        return [sum(self.counts.get(label, [])) for label in range(classes)]

    def candidates(self):
        return [edge for edge in self.edges() or [] if all(sum(side) > 0.0 for side in self.branches(edge))]

    def branches(self, threshold):
        edges = self.edges()
        left: list[float] = []
        right: list[float] = []
        for label in sorted(self.counts):
            for i, weight in enumerate(self.counts[label]):
                if weight > 0.0:
                    add(left if i <= self.bin(threshold, edges) else right, label, weight)
        return [left, right]


class Exact:
    """The first values with their classes and weights."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.records = []

    def observe(self, value, label, weight):
        """Take in a value; return False if there is no room for it."""
        if is_missing(value):
            return True
        if len(self.records) < self.capacity:
            self.records.append((value, label, weight))
            return True
        return False

    def density(self, value, label):
        mine = [(x, weight) for x, c, weight in self.records if c == label]
        total = sum(weight for _, weight in mine)
        if total == 0.0:
            return 0.0
        mean = sum(x * weight for x, weight in mine) / total
        squares = sum(weight * (x - mean) ** 2 for x, weight in mine)
        if total <= 1.0 or squares / (total - 1.0) <= 1e-24:
            return 1.0 if abs(value - mean) < 1e-12 else 0.0
        variance = squares / (total - 1.0)
        return math.exp(-((value - mean) ** 2) / (2.0 * variance)) / math.sqrt(2.0 * math.pi * variance)

    def class_totals(self, classes):
        return [sum(weight for _, c, weight in self.records if c == label) for label in range(classes)]

    def candidates(self):
        values = sorted({x for x, _, _ in self.records})
        return [(one + other) / 2.0 for one, other in pairwise(values)]

    def branches(self, threshold):
        left: list[float] = []
        right: list[float] = []
        for x, label, weight in self.records:
            add(left if x <= threshold else right, label, weight)
        return [left, right]
