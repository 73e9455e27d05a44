"""C4.5 with lists and recursion: every test of every attribute tried, pruning as Quinlan's book tells it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


def added_errors(n: float, errors: float, confidence: float) -> float:
    """C4.5's AddErrs: exact for none, the normal approximation with its interpolated deviate above."""
    tails = [0.0, 0.001, 0.005, 0.01, 0.05, 0.10, 0.20, 0.40, 1.00]
    deviates = [4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.00]
    i = 0
    while confidence > tails[i]:
        i += 1
    step = (confidence - tails[i - 1]) / (tails[i] - tails[i - 1])
    square = (deviates[i - 1] + (deviates[i] - deviates[i - 1]) * step) ** 2
    if n == 0:
        return 0.0
    if errors == 0:
        return n * (1.0 - math.exp(math.log(confidence) / n))
    if errors + 0.5 >= n:
        return 0.67 * (n - errors)
    inner = square * ((errors + 0.5) * (1 - (errors + 0.5) / n) + square / 4)
    return n * (errors + 0.5 + square / 2 + math.sqrt(inner)) / (n + square) - errors


@dataclass
class Node:
    label: int
    counts: list[int]
    attribute: int = -1
    threshold: float = 0.0
    children: list[Node] = field(default_factory=list)
    missing: int = 0

    def branch(self, value: float, nominal: int) -> int:
        if math.isnan(value):
            return self.missing
        return int(value) if nominal else int(value > self.threshold)

    def outline(self) -> Any:
        if not self.children:
            return (self.label, tuple(self.counts))
        return (self.attribute, self.threshold, *(child.outline() for child in self.children))


def entropy(labels: list[int]) -> float:
    n = len(labels)
    return -sum(m / n * math.log2(m / n) for m in Counter(labels).values())


class C45:
    def __init__(self, x, y, values, classes, least=2, ratio=False, confidence=None, raising=True):
        self.x, self.y = [list(map(float, row)) for row in x], [int(label) for label in y]
        self.values, self.classes, self.least, self.ratio = list(values), classes, least, ratio
        self.confidence, self.raising = confidence, raising
        rows = list(range(len(self.y)))
        self.root = self.grow(rows, 0)
        if confidence is not None:
            self.collapse(self.root)
            self.root = self.prune(self.root, rows)

    def count(self, rows):
        return [sum(self.y[r] == c for r in rows) for c in range(self.classes)]

    def leaf(self, rows, otherwise):
        counts = self.count(rows)
        return Node(counts.index(max(counts)) if rows else otherwise, counts)

    def parts(self, node, rows):
        parts: list[list[int]] = [[] for _ in range(max(self.values[node.attribute], 2))]
        for r in rows:
            parts[node.branch(self.x[r][node.attribute], self.values[node.attribute])].append(r)
        return parts

    def tests(self, rows, a):
        """All tests of an attribute: (gain, split information, threshold)."""
        known = [r for r in rows if not math.isnan(self.x[r][a])]
        if self.values[a]:
            cuts = [(0.0, [[r for r in known if self.x[r][a] == v] for v in range(self.values[a])])]
        else:
            values = sorted({self.x[r][a] for r in known})
            cuts = []
            for low, high in pairwise(values):
                middle = (low + high) / 2
                sides = [
                    [r for r in known if self.x[r][a] <= middle],
                    [r for r in known if self.x[r][a] > middle],
                ]
                cuts.append((middle, sides))
        for threshold, branches in cuts:
            if sum(len(branch) >= self.least for branch in branches) < 2:
                continue
            n = len(known)
            after = sum(len(b) / n * entropy([self.y[r] for r in b]) for b in branches if b)
            gain = n / len(rows) * (entropy([self.y[r] for r in known]) - after)
            sizes = [len(b) for b in branches if b] + [len(rows) - n] * (len(rows) > n)
            info = -sum(s / len(rows) * math.log2(s / len(rows)) for s in sizes)
            if gain > 1e-10:
                yield gain, info, threshold

    def grow(self, rows, otherwise):
        node = self.leaf(rows, otherwise)
        if len(rows) < 2 * self.least or max(node.counts) == len(rows):
            return node
        best: dict[int, tuple[float, float, float]] = {}
        for a in range(len(self.values)):
            for gain, info, threshold in self.tests(rows, a):
                if a not in best or gain > best[a][0] + 1e-12:
                    best[a] = (gain, info, threshold)
        chosen, most = None, 0.0
        mean = sum(gain for gain, _, _ in best.values()) / max(len(best), 1)
        for a, (gain, info, _) in best.items():
            worth = gain
            if self.ratio:
                worth = gain / info if gain >= mean - 1e-3 and info > 1e-3 else 0.0
            if worth > most + 1e-12:
                chosen, most = a, worth
        if chosen is None:
            return node
        node.attribute, node.threshold = chosen, best[chosen][2]
        known = [r for r in rows if not math.isnan(self.x[r][chosen])]
        sizes = [len(part) for part in self.parts(node, known)]
        node.missing = sizes.index(max(sizes))
        node.children = [self.grow(part, node.label) for part in self.parts(node, rows)]
        return node

    def wrong(self, node):
        if node.children:
            return sum(map(self.wrong, node.children))
        return sum(node.counts) - node.counts[node.label]

    def collapse(self, node):
        for child in node.children:
            self.collapse(child)
        if node.children and sum(node.counts) - max(node.counts) <= self.wrong(node):
            node.children, node.attribute = [], -1

    def expected(self, rows):
        counts = self.count(rows)
        wrong = len(rows) - max(counts)
        return wrong + added_errors(len(rows), wrong, self.confidence)

    def estimate(self, node, rows):
        if not node.children:
            return self.expected(rows)
        return sum(
            self.estimate(c, part) for c, part in zip(node.children, self.parts(node, rows), strict=True)
        )

    def prune(self, node, rows, otherwise=0):
        made = self.leaf(rows, otherwise if not rows else 0)
        if not node.children:
            return made
        parts = self.parts(node, rows)
        made.attribute, made.threshold, made.missing = node.attribute, node.threshold, node.missing
        made.children = [
            self.prune(c, part, made.label) for c, part in zip(node.children, parts, strict=True)
        ]
        sizes = [len(part) for part in parts]
        branch = made.children[sizes.index(max(sizes))]
        as_leaf, as_tree = self.expected(rows), self.estimate(made, rows)
        as_branch = self.estimate(branch, rows) if self.raising else math.inf
        if as_leaf <= min(as_tree, as_branch) + 0.1:
            return self.leaf(rows, otherwise)
        if as_branch <= as_tree + 0.1:
            return self.prune(branch, rows, otherwise)
        return made

    def predict(self, x):
        node = self.root
        while node.children:
            node = node.children[node.branch(x[node.attribute], self.values[node.attribute])]
        return node.label
