"""Calibrators and conformal thresholds, written for reading: lists, whole sums, no bounded memory in mind."""

from __future__ import annotations

import itertools
import math

import numpy as np


def relative(weights):
    """Return each weight in units of the mean of the weights so far, at most 10."""
    total, made = 0.0, []
    for number, weight in enumerate(weights, 1):
        total += weight
        made.append(min(weight * number / total, 10.0))
    return made


class Platt:
    """Newton steps on the log-loss of one curve, with the matrix inverted anew at each label."""

    def __init__(self, beta=0.1, prior=10.0, memory=5000):
        self.beta, self.prior = beta, prior
        self.factor = 1.0 - 1.0 / memory if memory >= 1 else 1.0
        self.theta = np.array([1.0, 0.0])
        self.first = np.eye(2) / beta**2
        self.squares = self.first.copy()
        self.labels = []  # bin, label less value, weight

    def curve(self, share):
        bounded = min(max(share, 1e-6), 1.0 - 1e-6)
        x = np.array([math.log(bounded / (1.0 - bounded)), 1.0])
        return x, 1.0 / (1.0 + math.exp(-min(max(float(self.theta @ x), -30.0), 30.0)))

    def calibrated(self, share):
        _, value = self.curve(share)
        place = min(int(value * 10), 9)
        of_bin = [(error, weight) for b, error, weight in self.labels if b == place]
        total = sum(weight for _, weight in of_bin) + self.prior
        error = sum(weight * error for error, weight in of_bin) / total if total else 0.0
        return min(max(value + error, 0.0), 1.0)

    def learn(self, share, label, weight=1.0):
        x, value = self.curve(share)
        self.labels = [(b, one, old * self.factor) for b, one, old in self.labels]
        self.labels.append((min(int(value * 10), 9), label - value, weight))
        gradient = (value - label) * x
        kept = self.factor * self.squares + (1.0 - self.factor) * self.first
        self.squares = kept + weight * np.outer(gradient, gradient)
        step = np.linalg.inv(self.squares) @ gradient * weight / self.beta
        self.theta = np.clip(self.theta - step, -100.0, 100.0)


class Isotonic:
    """Blocks as a sorted list; neighbours are merged, and the fit is the largest of smallest means."""

    def __init__(self, blocks=24, prior=1.0, memory=5000):
        self.most, self.prior = blocks, prior
        self.factor = 1.0 - 1.0 / memory if memory >= 1 else 1.0
        self.blocks = []  # share, weight, hits

    def learn(self, share, label, weight=1.0):
        kept = [(s, w * self.factor, h * self.factor) for s, w, h in self.blocks]
        kept = [block for block in kept if block[1] > 1e-12]
        same = [block for block in kept if block[0] == share]
        if same:
            at = kept.index(same[0])
            kept[at] = (share, kept[at][1] + weight, kept[at][2] + weight * label)
        else:
            kept = sorted([*kept, (share, weight, weight * label)])
        if len(kept) > self.most:
            costs = [(b[0] - a[0]) ** 2 * a[1] * b[1] / (a[1] + b[1]) for a, b in itertools.pairwise(kept)]
            at = costs.index(min(costs))
            a, b = kept[at : at + 2]
            total = a[1] + b[1]
            kept[at : at + 2] = [((a[0] * a[1] + b[0] * b[1]) / total, total, a[2] + b[2])]
        self.blocks = kept

    def fitted(self):
        """Return the fitted value of each block: max over starts before it of min over ends after it."""
        n = len(self.blocks)

        def mean(first, last):
            part = self.blocks[first : last + 1]
            hits = sum(h + self.prior * s for s, _, h in part)
            return hits / sum(w + self.prior for _, w, _ in part)

        return [
            max(min(mean(first, last) for last in range(at, n)) for first in range(at + 1)) for at in range(n)
        ]

    def calibrated(self, share):
        if not self.blocks:
            return share
        return float(np.interp(share, [block[0] for block in self.blocks], self.fitted()))


class Threshold:
    """The threshold of sets: steps of online gradient descent on the pinball loss of the scores."""

    def __init__(self, alpha=0.1, step=1.0, decay=0.6):
        self.alpha, self.step, self.decay = alpha, step, decay
        self.value, self.steps = 1.0, 0

    def learn(self, probability, weight=1.0):
        self.steps += 1
        size = self.step * self.steps**-self.decay
        missed = 0.0 if probability >= 1.0 - self.value else 1.0
        move = size * (missed - self.alpha)
        # Outside of [0, 1] a label of any weight moves at most as far as one of weight 1 from the border.
        farthest = max(self.value, 1.0 + move) if missed else min(self.value, move)
        free = self.value + weight * move
        self.value = min(free, farthest) if missed else max(free, farthest)


def set_of(probabilities, threshold):
    """Return the classes with a probability of at least 1 - threshold."""
    return [name for name, probability in probabilities.items() if probability >= 1.0 - threshold]


def expected_error(claims, hits, bins=15):
    """Return the expected calibration error of claims from 0 to 1, and whether each was a hit."""
    places = np.minimum((np.asarray(claims) * bins).astype(int), bins - 1)
    gaps = np.bincount(places, np.asarray(hits, float) - claims, bins)
    return float(np.abs(gaps).sum() / len(places))
