"""The input detector, the obvious way: whole windows as lists, compared with scipy."""

import math
import sys
from bisect import bisect_left
from collections import Counter

from scipy import stats

DISTANCES = ("ks", "psi", "hellinger")


class Inputs:
    """Watches columns; ``nominal``: the columns that are categories."""

    def __init__(
        self, columns, nominal, *, window, reference, bins, alpha, features, distance="ks", least=0.0
    ):
        self.columns, self.nominal = columns[:features], nominal
        self.window, self.reference, self.bins = window, reference, bins
        self.alpha, self.distance, self.least = alpha, DISTANCES.index(distance), least
        self.comparisons = 0
        self.begin()

    def begin(self):
        self.sample, self.before, self.now = [], [], []

    def take(self, record):
        """Take in a record after its answer."""
        for part, size in (
            (self.sample, 8 * self.bins),
            (self.before, self.reference),
            (self.now, self.window),
        ):
            if len(part) < size:
                part.append(list(record))
                return

    def changed(self):
        """Return the columns that moved, None: no window is full or it does not differ."""
        if len(self.now) < self.window:
            return None
        self.comparisons += 1
        p_values = [
            (p, which, column)
            for column in self.columns
            for which, p in enumerate(self.p_values(column))
            if p is not None
        ]
        level = self.alpha / (self.comparisons * (self.comparisons + 1))
        large = [
            (p, column)
            for p, which, column in p_values
            if which == 1 or self.distances(column)[self.distance] >= self.least
        ]
        moved = []
        if large and min(large)[0] * len(p_values) <= level:
            for number, (p, _, column) in enumerate(sorted(p_values)):
                if p * (len(p_values) - number) > level:
                    break
                if (p, column) in large and column not in moved:
                    moved.append(column)
        self.now = []
        if moved:
            self.begin()
        return moved or None

    def values(self, part, column):
        return [record[column] for record in part if math.isfinite(record[column])]

    def cells(self, column):
        """Return the cells of the values of both windows."""
        before, now = self.values(self.before, column), self.values(self.now, column)
        if column in self.nominal:
            last = 4 * self.bins - 1
            return [[-1 if v < 0 else int(v) % last for v in part] for part in (before, now)]
        sample = sorted(self.values(self.sample, column))
        n = len(sample)
        edges = [sample[max(math.ceil(i * n / self.bins) - 1, 0)] for i in range(1, self.bins)] if n else [0]
        if n:
            edges = divided(edges, sample[0], sample[-1])
        return [[bisect_left(edges, v) for v in part] for part in (before, now)]

    def distances(self, column):
        """Return KS (categories: the largest difference of a share), PSI and Hellinger's distance."""
        before, now = self.cells(column)
        a, b = Counter(before), Counter(now)
        p = {cell: b[cell] / len(now) for cell in a | b}
        q = {cell: a[cell] / len(before) for cell in a | b}
        if column in self.nominal:
            ks = max(abs(p[cell] - q[cell]) for cell in p)
        else:
            ks = stats.ks_2samp(before, now).statistic
        psi = 0.0
        for cell in p:
            mine, theirs = max(p[cell], 0.5 / len(now)), max(q[cell], 0.5 / len(before))
            psi += (mine - theirs) * math.log(mine / theirs)
        affinity = sum(math.sqrt(p[cell] * q[cell]) for cell in p)
        return ks, psi, math.sqrt(max(0.0, 1.0 - affinity))

    def p_values(self, column):
        """Return the p-values of the values and of the missing ones; None: not tested."""
        before, now = self.cells(column)
        missing = share_p(self.reference - len(before), self.reference, self.window - len(now), self.window)
        if not before or not now:
            return 1.0 if before or now else None, missing
        a, b = Counter(before), Counter(now)
        cells = a | b
        shares = [share_p(a[c], len(before), b[c], len(now)) for c in cells]
        p = len(cells) * min(1.0 if share is None else share for share in shares)
        if column not in self.nominal:
            size = len(before) * len(now) / (len(before) + len(now))
            p = 2 * min(p, math.e * math.exp(-2 * size * self.distances(column)[0] ** 2))
        return min(1.0, p), missing


def divided(edges, least, most):
    """Return the edges with a second one below each frequent value."""
    edges, uses = list(edges), Counter(edges)
    if uses[least] == 1 and uses[edges[1]] == 1:
        edges[1] = least
    if uses[most] == uses[edges[-2]] == 1 and edges[-2] > least:
        edges[-2] = most
    for value, n in Counter(edges).items():
        if (n > 1 or value == least) and value > -sys.float_info.max:
            edges[edges.index(value)] = math.nextafter(value, -math.inf)
    return edges


def share_p(before, all_before, now, all_now):
    """Return twice Chernoff's bound for the rarer of a kind and its complement; None: nothing can differ."""
    both, everything = before + now, all_before + all_now
    if both in (0, everything):
        return None
    if 2 * both > everything:
        both, now = everything - both, all_now - now
    share, expected = now / both, all_now / everything
    bound = sum(x * math.log(x / y) for x, y in ((share, expected), (1 - share, 1 - expected)) if x > 0)
    return min(1.0, 2 * math.exp(-both * bound))
