"""Online boosting, the obvious way: trees are objects, a record goes from one to the next with its weight."""

import copy
import math

from core.numeric import rng
from tests.naive.tree import HTree
from tests.naive.votes import first_maximum, normalised


class OzaBoost:
    """Oza and Russell (2001), figure 5: ``mean`` of the Poisson variate, 0: weights without chance."""

    def __init__(self, options, members, mean, seed=1):
        self.trees = [HTree(copy.deepcopy(options)) for _ in range(members)]
        self.right = [0.0] * members
        self.wrong = [0.0] * members
        self.mean = mean
        self.moa = options.moa
        self.key = rng.stream_key(seed, rng.BAGGING)
        self.labels = 0

    def weight_of(self, i):
        """Return the weight of a member's vote."""
        right, wrong = self.right[i], self.wrong[i]
        if not self.moa:
            return max(math.log((right + 0.5) / (wrong + 0.5)), 1e-9)
        if wrong == 0.0 or wrong / (right + wrong) > 0.5:
            return 0.0
        error = wrong / (right + wrong)
        return math.log(1.0 / (error / (1.0 - error)))

    def shares(self, x):
        """Return the votes of all members by class, in proportion."""
        sums = [0.0] * max(tree.classes for tree in self.trees)
        for i, tree in enumerate(self.trees):
            if (weight := self.weight_of(i)) <= 0.0:
                break
            for c, share in enumerate(tree.shares(x)):
                sums[c] += weight * share
        return normalised(sums) if sum(sums) > 0.0 else sums

    def predict(self, x, weight):
        """Return the class and the shares for a record, which every member counts on its path."""
        for tree in self.trees:
            tree.visit(x, weight)
        shares = self.shares(x)
        return first_maximum(shares) if shares else -1, shares

    def learn(self, x, label, weight):
        """Let every member learn the record in turn, and vote for it afterwards."""
        mass = 1.0
        for i, tree in enumerate(self.trees):
            tree.notice(x, label)
            if (times := self.times(i, mass)) > 0.0:
                tree.learn(x, label, times * weight)
            is_right = tree.predict(x)[0] == label
            sums = self.right if is_right else self.wrong
            sums[i] += mass * weight
            mass *= (self.right[0] + self.wrong[0]) / (2.0 * sums[i])
        self.labels += 1

    def times(self, i, mass):
        mean = mass * self.mean
        if self.mean == 0.0:
            return mass
        if mean > 100.0:
            return math.floor(mean + 0.5)
        return rng.poisson(self.key, (self.labels << rng.DRAW_BITS) + i, mean)
