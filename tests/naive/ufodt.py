"""UFODT, the obvious way: AFA's Algorithms 1 to 6 with lists and NumPy, string by string and edge by edge.

It draws what core draws, from the same counters, and shares nothing else with it.
"""

from itertools import product

import numpy as np

from core.numeric import rng


class Feature:
    """A nominal feature with so many values, or a numeric one with thresholds and a range."""

    def __init__(self, values=2, thresholds=None, limits=(0.0, 1.0), cost=1.0):
        self.thresholds = thresholds
        self.values = 2 if thresholds else values
        self.limits = limits
        self.cost = cost

    def outcome(self, x, k):
        return int(x > self.thresholds[k]) if self.thresholds else int(x)


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
        self.by_region = options.get("prediction", "bayes") == "region"
        self.counted = options.get("prior", "uniform") == "counts"
        # counts[class][feature][threshold] = parameters of the outcomes
        self.counts = [
            [np.ones((len(f.thresholds) if f.thresholds else 1, f.values)) for f in features]
            for _ in range(classes)
        ]
        self.used = [[np.ones(len(counts)) for counts in row] for row in self.counts]
        self.gains = [np.zeros(len(f.thresholds) if f.thresholds else 1) for f in features]
        self.labels = [0.0] * classes
        self.episode = 0

    def key(self, stream):
        return np.uint64(rng.bits(rng.stream_key(self.seed, stream), self.episode))

    def sample(self):
        """Algorithm 1, line 2: theta[class][feature][threshold] = chances of the outcomes."""
        key, found = self.key(rng.THETA_SAMPLING), []
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
            found.append(row)
        return found

    def choose_thresholds(self, theta):
        key = self.key(rng.EXPLORATION)
        self.k, self.chance = [], []
        for i, f in enumerate(self.features):
            n = len(f.thresholds) if f.thresholds else 1
            if f.thresholds and (self.exp3 or self.criterion == "random"):
                rate = 0.0 if self.criterion == "random" else self.eta
                p = np.exp(rate * (self.gains[i] - self.gains[i].max()))
                p /= p.sum()
                u = rng.uniform(key, (1 << 32) + i)
                self.k.append(min(int((u >= np.cumsum(p)).sum()), n - 1))
                self.chance.append(p[self.k[-1]])
            else:
                total = sum(self.used[c][i] for c in range(self.m))
                self.k.append(int(np.argmax(total)) if f.thresholds else 0)
                self.chance.append(1.0)

    def hypotheses(self, mean, prior):
        """Algorithm 4, distinct strings; or all of them."""
        everything = list(product(*[range(f.values) for f in self.features]))
        if self.enumerate and len(everything) <= max(self.n, 4096):
            return everything
        key, found, c = self.key(rng.HYPOTHESIS_SAMPLING), [], None
        for attempt in range(64 * self.n):
            draw = attempt * (len(self.features) + 1)
            if c is None:  # a string drawn again is drawn anew for the same class
                c = min(int((rng.uniform(key, draw) >= np.cumsum(prior)).sum()), self.m - 1)
            h = tuple(
                min(int((rng.uniform(key, draw + 1 + i) >= np.cumsum(mean[c][i])).sum()), f.values - 1)
                for i, f in enumerate(self.features)
            )
            if h not in found:
                found.append(h)
                c = None
            if len(found) == self.n:
                break
        return found

    def posterior(self, theta, prior, observed):
        p = np.array(prior)
        for i in sorted(observed):
            p = p * [theta[c][i][self.k[i]][observed[i]] for c in range(self.m)]
        return p / p.sum()

    def play(self, x):
        """Algorithm 3 over a record; return the class."""
        theta = self.sample()
        total = sum(self.labels)
        prior = [(n + 1.0) / (total + self.m) if self.counted else 1.0 / self.m for n in self.labels]
        mean = [
            [np.average(theta[c][i], axis=0, weights=self.used[c][i]) for i in range(len(self.features))]
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
        gone, first = set(), True
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
                if self.budget and self.cost + f.cost > self.budget + 1e-9 * self.budget:
                    continue
                ks = range(len(f.thresholds)) if f.thresholds and not self.exp3 else [self.k[i]]
                if self.criterion == "random":
                    ks = [self.k[i]]
                values = []
                for k in ks:
                    likelihood = np.array([theta[c][i][k] for c in range(self.m)])
                    values.append(self.score(i, likelihood, alive, region, weight, rho, most))
                j = first_best(values)
                self.k[i] = list(ks)[j]
                if first and self.exp3 and f.thresholds and self.criterion != "random" and most > 0:
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
        rho = self.posterior(theta, prior, self.observed)
        if self.by_region and alive:
            masses = [sum(weight[h] for h in alive if region[h] == c) for c in range(self.m)]
            return int(np.argmax(masses))
        return int(np.argmax(rho))

    def score(self, i, likelihood, alive, region, weight, rho, most):
        """Return the expected gain of an answer to i."""
        if self.criterion == "random":
            return 1.0 - rng.uniform(self.key(rng.EXPLORATION), (4 << 32) + i)
        found = 0.0
        for v in range(self.features[i].values):
            chance = float(rho @ likelihood[:, v])
            if chance > 0.0:
                after = rho * likelihood[:, v] / chance
                rest = [h for h in alive if h[i] == v]
                found += chance * (most - potential(self.criterion, rest, region, weight, after))
        return found

    def learn(self, label, weight=1.0):
        """Algorithms 2, 5 and 6, with what the last episode has observed."""
        for c in range(self.m):
            for i in range(len(self.features)):
                self.counts[c][i] += self.gamma * (1.0 - self.counts[c][i])
        for i, v in self.observed.items():
            self.counts[label][i][self.k[i]][v] += weight
            if self.features[i].thresholds:
                self.used[label][i][self.k[i]] += weight
        self.labels[label] += weight
        for i, gain in self.gain.items():
            self.gains[i][self.k[i]] += gain / self.chance[i]


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
