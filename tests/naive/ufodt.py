"""UFODT, the obvious way: AFA's Algorithms 1 to 6 with lists and NumPy, string by string and edge by edge.

It draws what core draws, from the same counters, and shares nothing else with it.
"""

import importlib
from itertools import product

import numpy as np

from core.numeric import rng

digamma = importlib.import_module("scipy.special").digamma


class Feature:
    """A nominal feature with so many values, or a numeric one with thresholds: declared, or to be made of its
    first ``warm_up`` values.
    """

    def __init__(self, values=2, thresholds=None, cost=1.0, warm_up=0, cuts=0):
        self.thresholds = thresholds
        self.is_numeric = thresholds is not None or warm_up > 0
        self.values = 2 if self.is_numeric else values
        self.cost, self.warm_up = cost, warm_up
        self.places = cuts or len(thresholds or ()) or 1
        self.seen: list[float] = []

    @property
    def gathers(self):
        return self.warm_up > 0 and self.thresholds is None

    @property
    def arms(self):
        return len(self.thresholds) if self.thresholds else 0 if self.gathers else 1

    def outcome(self, x, k):
        return int(x > self.thresholds[k]) if self.is_numeric else int(x)

    def take(self, x):
        """Take in a first value: with the last one thresholds are where they cut all into equal parts."""
        self.seen.append(x)
        if len(self.seen) < self.warm_up:
            return
        values, parts = sorted(self.seen), self.places + 1
        ends = [j * len(values) // parts for j in range(1, parts)]
        cuts = {(values[i - 1] + values[i]) / 2 for i in ends if i > 0}
        self.thresholds = sorted(cut for cut in cuts if cut < values[-1]) or [values[0]]


class Ufodt:
    """A learner; `bought` of its last episode, in order."""

    def __init__(self, features, classes, seed=1, **options):
        self.features, self.m, self.seed = features, classes, seed
        self.criterion = options.get("criterion", "ec2")
        self.n = options.get("hypotheses", 100)
        self.enumerate = options.get("enumerate", True)
        self.gamma = options.get("discount", 0.0)
        self.exp3 = options.get("thresholds", "exp3") == "exp3"
        self.eta = options.get("exp3_rate", 0.01)
        self.budget = options.get("record_budget", 0.0)
        self.prediction = options.get("prediction", "posterior")
        self.answer = options.get("answer", "geometric")
        self.counted = options.get("prior", "uniform") == "counts"
        # counts[class][feature][threshold] = parameters of the outcomes
        self.counts = [
            [np.ones((f.places if f.is_numeric else 1, f.values)) for f in features] for _ in range(classes)
        ]
        self.used = [[np.ones(len(counts)) for counts in row] for row in self.counts]
        self.gains = [np.zeros(f.places) for f in features]
        self.labels = [0.0] * classes
        self.episode = self.learned = 0

    def key(self, stream, number=None):
        number = self.episode if number is None else number
        return np.uint64(rng.bits(rng.stream_key(self.seed, stream), number))

    def sample(self, number=None):
        """Algorithm 1, line 2: theta[class][feature][threshold] = chances of the outcomes."""
        key, rows = self.key(rng.THETA_SAMPLING, number), []
        for c in range(self.m):
            row = []
            for i, f in enumerate(self.features):
                table = np.empty_like(self.counts[c][i])
                for k, counts in enumerate(self.counts[c][i]):
                    first = [
                        128 * (((c * len(self.features) + i) << 11) + v) for v in range(max(f.values, k + 1))
                    ]
                    if f.values == 2:
                        one = rng.beta(key, first[k], counts[1], counts[0])
                        table[k] = 1.0 - one, one
                    else:
                        drawn = [rng.gamma(key, first[v], counts[v]) for v in range(f.values)]
                        table[k] = np.array(drawn) / sum(drawn)
                row.append(table)
            rows.append(row)
        return rows

    def choose_thresholds(self, theta):
        key = self.key(rng.EXPLORATION)
        self.k: list[int | None] = []
        self.chance: list[float] = []
        for i, f in enumerate(self.features):
            n = f.arms
            if f.gathers:
                self.k.append(None)
                self.chance.append(np.nan)
            elif f.is_numeric and (self.exp3 or self.criterion == "random"):
                rate = 0.0 if self.criterion == "random" else self.eta
                gains = self.gains[i][:n]
                p = np.exp(rate * (gains - gains.max()))
                p /= p.sum()
                u = rng.uniform(key, (1 << 32) + i)
                self.k.append(min(int((u >= np.cumsum(p)).sum()), n - 1))
                self.chance.append(p[self.k[-1]])
            else:
                total = sum(self.used[c][i][:n] for c in range(self.m))
                self.k.append(int(np.argmax(total)) if f.is_numeric else 0)
                self.chance.append(1.0)

    def hypotheses(self, mean, prior):
        """Algorithm 4, distinct strings; or all of them."""
        everything = list(product(*[range(1 if f.gathers else f.values) for f in self.features]))
        if self.enumerate and len(everything) <= max(self.n, 4096):
            return everything
        key, hypotheses, c = self.key(rng.HYPOTHESIS_SAMPLING), [], None
        for attempt in range(64 * self.n):
            draw = attempt * (len(self.features) + 1)
            if c is None:  # a string drawn again is drawn anew for the same class
                c = min(int((rng.uniform(key, draw) >= np.cumsum(prior)).sum()), self.m - 1)
            h = tuple(
                0
                if f.gathers
                else min(int((rng.uniform(key, draw + 1 + i) >= np.cumsum(mean[c][i])).sum()), f.values - 1)
                for i, f in enumerate(self.features)
            )
            if h not in hypotheses:
                hypotheses.append(h)
                c = None
            if len(hypotheses) == self.n:
                break
        return hypotheses

    def posterior(self, theta, prior, observed):
        p = np.array(prior)
        for i in sorted(observed):
            p = p * [theta[c][i][self.k[i]][observed[i]] for c in range(self.m)]
        return p / p.sum()

    def theta_of_now(self):
        """Return theta[class][feature][threshold] that the posterior is answered by."""
        if self.answer == "sampled":
            return self.sample((1 << 62) + self.learned)  # beyond the numbers of all episodes
        theta = []
        for row in self.counts:
            totals = [counts.sum(axis=1, keepdims=True) for counts in row]
            if self.answer == "mean":
                theta.append([counts / total for counts, total in zip(row, totals, strict=True)])
            else:
                pairs = zip(row, totals, strict=True)
                theta.append([np.exp(digamma(counts) - digamma(total)) for counts, total in pairs])
        return theta

    def play(self, x):
        """Algorithm 3 over a record; return the class."""
        theta = self.sample()
        total = sum(self.labels)
        counted = self.counted or all(f.gathers for f in self.features)
        prior = [(n + 1.0) / (total + self.m) if counted else 1.0 / self.m for n in self.labels]
        mean = [
            [
                [1.0]
                if f.gathers
                else np.average(theta[c][i][: f.arms], axis=0, weights=self.used[c][i][: f.arms])
                for i, f in enumerate(self.features)
            ]
            for c in range(self.m)
        ]
        self.choose_thresholds(theta)
        strings = self.hypotheses(mean, prior)
        joint = {
            h: [prior[c] * np.prod([mean[c][i][v] for i, v in enumerate(h)]) for c in range(self.m)]
            for h in strings
        }
        region = {h: int(np.argmax(joint[h])) for h in strings}
        weight = {h: sum(joint[h]) for h in strings}
        alive = list(strings)
        self.observed: dict[int, int] = {}
        self.bought: list[int] = []
        self.gain: dict[int, float] = {}
        self.cost, self.reason = 0.0, ""
        self.first: dict[int, float] = {}
        gone, first = self.gather(x), True
        while True:
            if len({region[h] for h in alive}) <= 1:
                self.reason = "one_region" if alive else "none_left"
                break
            rho = self.posterior(theta, prior, self.observed)
            most = potential(self.criterion, alive, region, weight, rho)
            best, best_ratio = None, -1.0
            left = [i for i in range(len(self.features)) if i not in self.observed and i not in gone]
            for i in left:
                f = self.features[i]
                if not self.affords(f):
                    continue
                ks = range(f.arms) if f.is_numeric and not self.exp3 else [self.k[i]]
                if self.criterion == "random":
                    ks = [self.k[i]]
                values = []
                for k in ks:
                    likelihood = np.array([theta[c][i][k] for c in range(self.m)])
                    values.append(self.score(i, likelihood, alive, region, weight, rho, most))
                j = first_best(values)
                self.k[i] = list(ks)[j]
                if first and self.exp3 and f.is_numeric and self.criterion != "random" and most > 0:
                    self.gain[i] = min(max(values[j] / most, 0.0), 1.0)
                ratio = values[j] if self.criterion == "random" else values[j] / f.cost
                if ratio > best_ratio + 1e-12 * abs(best_ratio):
                    best, best_ratio = i, ratio
            first = False
            if best is None:
                self.reason = "budget" if left else "exhausted"
                break
            if np.isnan(x[best]):
                gone.add(best)
                continue
            self.observed[best] = self.features[best].outcome(x[best], self.k[best])
            self.bought.append(best)
            self.cost += self.features[best].cost
            alive = [h for h in alive if h[best] == self.observed[best]]
        self.episode += 1
        if self.prediction == "region" and alive:
            masses = [sum(weight[h] for h in alive if region[h] == c) for c in range(self.m)]
            return int(np.argmax(masses))
        if self.prediction == "posterior":
            return first_best(self.posterior(self.theta_of_now(), prior, self.observed))
        return int(np.argmax(self.posterior(theta, prior, self.observed)))

    def affords(self, feature):
        return not self.budget or self.cost + feature.cost <= self.budget + 1e-9 * self.budget

    def gather(self, x):
        """Buy the features that have no thresholds yet; return those that may not be asked for any more."""
        gone = set()
        for i, f in enumerate(self.features):
            if f.gathers and self.affords(f):
                gone.add(i)
                if not np.isnan(x[i]):
                    self.first[i] = float(x[i])
                    self.bought.append(i)
                    self.cost += f.cost
        return gone

    def score(self, i, likelihood, alive, region, weight, rho, most):
        """Return the expected gain of an answer to i."""
        if self.criterion == "random":
            return 1.0 - rng.uniform(self.key(rng.EXPLORATION), (4 << 32) + i)
        gain = 0.0
        for v in range(self.features[i].values):
            chance = float(rho @ likelihood[:, v])
            if chance > 0.0:
                after = rho * likelihood[:, v] / chance
                rest = [h for h in alive if h[i] == v]
                gain += chance * (most - potential(self.criterion, rest, region, weight, after))
        return gain

    def learn(self, label, weight=1.0):
        """Algorithms 2, 5 and 6, with what the last episode has observed."""
        for c in range(self.m):
            for i in range(len(self.features)):
                self.counts[c][i] += self.gamma * (1.0 - self.counts[c][i])
        for i, v in self.observed.items():
            self.counts[label][i][self.k[i]][v] += weight
            if self.features[i].is_numeric:
                self.used[label][i][self.k[i]] += weight
        self.labels[label] += weight
        self.learned += 1
        for i, gain in self.gain.items():
            self.gains[i][self.k[i]] += gain / self.chance[i]
        for i, value in self.first.items():
            self.features[i].take(value)


def edges(alive, region, weight):
    """Return the weight of all pairs of hypotheses of different regions."""
    return sum(
        weight[a] * weight[b]
        for number, a in enumerate(alive)
        for b in alive[:number]
        if region[a] != region[b]
    )


def entropy(p):
    p = np.asarray(p)
    p = p[p > 0.0]
    return float(-(p * np.log2(p)).sum())


def potential(criterion, alive, region, weight, rho):
    """Return what is left to gain: edges, entropy of the class, or of the hypotheses."""
    if criterion == "ec2":
        return edges(alive, region, weight)
    if criterion == "ig":
        return entropy(rho)
    total = sum(weight[h] for h in alive)
    return entropy([weight[h] / total for h in alive]) if total else 0.0


def first_best(values):
    """Return the first of the largest scores; those that differ by rounding alone are equal."""
    best = 0
    for j, value in enumerate(values):
        if value > values[best] + 1e-12 * abs(values[best]):
            best = j
    return best
