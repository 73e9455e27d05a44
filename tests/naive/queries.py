"""Query strategies and budgets, the obvious way.

A strategy answers "no", "yes", or "random": yes, whatever the record looks like. Its ``chance``, asked for
before, says how likely it asks; None: it does not know.
"""

import math
from dataclasses import dataclass, field

from tests.naive.calibration import Threshold, relative

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
QUERY_DECISION = 1
SPLIT_COIN = 2
RANDOMISED_THRESHOLD = 3
EVALUATION_SLICE = 7
DRAWS = 1 << 20  # draws that a record owns


def mix(z):
    """Return splitmix64's finaliser of a word."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def bits(seed, stream, counter):
    """Return the 64 bits of a purpose at a counter [D12]."""
    key = mix(mix(seed + GOLDEN & MASK) ^ (stream * 0xD1342543DE82EF95 & MASK))
    return mix(key + (counter + 1) * GOLDEN & MASK)


def uniform(seed, stream, counter):
    """Return the draw of a purpose at a counter, in [0, 1)."""
    return (bits(seed, stream, counter) >> 11) * 2.0**-53


def normal(seed, stream, first):
    """Return the standard normal variate made of two draws (Box and Muller)."""
    u, v = uniform(seed, stream, first), uniform(seed, stream, first + 1)
    return math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)


@dataclass
class Place:
    """Where a record ended: class masses of the node, labels the leaf itself has seen, known classes."""

    masses: list[float] = field(default_factory=list)
    observed: list[float] | None = None  # None: no leaf
    classes: int = 2
    in_hand: float = 0.0  # labels that the count of the budget leaves before this record, with it
    reserved: float = 0.0  # share of the records reserved for the evaluation
    labelled: float | None = None  # weight of the labels behind it; None: of those observed
    shares: list[float] | None = None  # of the classes, to the bit; None: as the masses say
    answered: list[float] = field(default_factory=list)  # class shares of the answer, none: no class known
    score: str | None = None  # score of the answer that counts; None: the leaf counts
    recent: list[int] = field(default_factory=list)  # labels in the window of the evaluation
    repeated: int = 0  # how many of them are equal to the label before
    hits: int = 0  # how many of them were predicted

    @property
    def doubt(self):
        """The score of the answer, from 0 to 1 - 1/K for the least confidence, to 1 for the others."""
        k, shares = max(self.classes, 2), sorted([*self.answered, 0.0, 0.0], reverse=True)
        if not any(shares):
            return 1.0 - 1.0 / k if self.score == "least_confidence" else 1.0
        return {
            "least_confidence": 1.0 - shares[0],
            "margin": 1.0 - (shares[0] - shares[1]),
            "entropy": sum(-p * math.log(p) for p in shares if p > 0.0) / math.log(k),
        }[str(self.score)]

    @property
    def certainty(self):
        """1 less the doubt on the scale from 0 to 1."""
        widest = 1.0 - 1.0 / max(self.classes, 2)
        return 1.0 - self.doubt / (widest if self.score == "least_confidence" else 1.0)

    @property
    def weight(self):
        """The weight of the labels that the leaf's shares rest on."""
        return sum(self.observed or []) if self.labelled is None else self.labelled

    @property
    def share(self):
        """The largest class share, one half without weight."""
        if self.score == "least_confidence":
            return 1.0 - self.doubt
        if self.score is not None:
            return 1.0 - self.doubt * (1.0 - 1.0 / max(self.classes, 2))
        if self.shares is not None:
            return max(self.shares)
        total = sum(self.masses)
        return max(self.masses) / total if total > 0.0 else 0.5


class CountBudget:
    """Open while what was spent before a record is less than a share of the records with it."""

    def __init__(self, limit=1.0, respend=False):
        self.limit = limit
        self.respend = respend

    def is_open(self, spent, returned, t):
        return spent / t < self.limit

    def spend(self, asked, reserved):
        pass


class WindowBudget:
    """Open while requests, exponentially forgotten, are less than a share of the window."""

    def __init__(self, limit=1.0, respend=False, window=100):
        self.limit = limit
        self.respend = respend
        self.window = window
        self.recent = 0.0
        self.paid = 0

    def is_open(self, spent, returned, t):
        return self.recent / self.window < self.limit or self.paid < returned

    def spend(self, asked, reserved):
        paid = asked and not reserved and self.recent / self.window >= self.limit
        self.recent *= (self.window - 1.0) / self.window
        if paid:
            self.paid += 1
        elif asked:
            self.recent += 1.0


class Always:
    def chance(self, t, place, limit):
        return 1.0 if limit >= 1 else None

    def decide(self, t, place, limit):
        return "random" if limit >= 1 else "yes"


class Never:
    def chance(self, t, place, limit):
        return None

    def decide(self, t, place, limit):
        return "no"


class Random:
    def __init__(self, seed):
        self.seed = seed

    def chance(self, t, place, limit):
        return limit

    def decide(self, t, place, limit):
        return "random" if uniform(self.seed, QUERY_DECISION, t * DRAWS) < limit else "no"


class FixedUncertainty:
    def __init__(self, threshold=0.9, cold_start=30.0):
        self.threshold = threshold
        self.cold_start = cold_start

    def chance(self, t, place, limit):
        return None

    def decide(self, t, place, limit):
        if place.observed is not None and place.weight < self.cold_start:
            return "yes"
        k = max(place.classes, 2)
        threshold = self.threshold if self.threshold > 0.0 else 1 / k + limit * (1 - 1 / k)
        return "yes" if place.share < threshold else "no"

    def score(self, t, place):
        return 1 - place.share


class VariableUncertainty:
    def __init__(self, step=0.01):
        self.step = step
        self.theta = 1.0

    def chance(self, t, place, limit):
        return None

    def score(self, t, place):
        return 1 - place.share

    def is_unsure(self, place):
        return place.share < self.theta

    def decide(self, t, place, limit):
        return self.move(place.share < self.theta)

    def move(self, yes):
        self.theta *= 1.0 - self.step if yes else 1.0 + self.step
        return "yes" if yes else "no"


class RandomisedUncertainty(VariableUncertainty):
    def __init__(self, seed, step=0.01):
        super().__init__(step)
        self.seed = seed

    def chance(self, t, place, limit):
        return 0.5 * math.erfc((place.share / self.theta - 1.0) / math.sqrt(2.0))

    def decide(self, t, place, limit):
        eta = 1.0 + normal(self.seed, RANDOMISED_THRESHOLD, t * DRAWS)
        return self.move(place.share < self.theta * eta)


class SelectiveSampling:
    def __init__(self, seed):
        self.seed = seed

    def score(self, t, place):
        return 1 - 1 / max(place.classes, 2) - abs(place.share - 1 / max(place.classes, 2))

    def probability(self, place, limit):
        return limit / (limit + abs(place.share - 1 / max(place.classes, 2)))

    def chance(self, t, place, limit):
        return self.probability(place, limit)

    def decide(self, t, place, limit):
        is_asked = uniform(self.seed, QUERY_DECISION, t * DRAWS) < self.probability(place, limit)
        return "yes" if is_asked else "no"


class ConfTree:
    def __init__(self, seed, delta=0.0):
        self.seed = seed
        self.delta = delta

    def epsilon(self, place, t):
        delta = self.delta or 1 / t
        return math.sqrt((math.log(max(place.classes, 2) * t) - math.log(delta)) / (2 * place.weight))

    def gap(self, place):
        shares = place.shares or (count / sum(place.observed) for count in place.observed)
        shares = sorted(shares, reverse=True)
        gap = shares[0] - (shares[1] if len(shares) > 1 else 0.0)
        return gap if place.score is None else min(gap, place.certainty)

    def score(self, t, place):
        if place.observed is None or sum(place.observed) == 0:
            return 1.0
        width = ConfTree(self.seed).epsilon(place, t)
        return width / (width + self.gap(place) / 2)

    def is_consistent(self, place, t):
        if place.observed is None or sum(place.observed) == 0:
            return False
        return self.gap(place) > 2 * self.epsilon(place, t)

    def probability(self, place, limit, t):
        e = self.epsilon(place, t)
        return (limit + e) / (limit + e + self.gap(place) / 2)

    def chance(self, t, place, limit):
        return self.probability(place, limit, t) if self.is_consistent(place, t) else 1.0

    def decide(self, t, place, limit):
        if not self.is_consistent(place, t):
            return "yes"
        is_asked = uniform(self.seed, QUERY_DECISION, t * DRAWS) < self.probability(place, limit, t)
        return "yes" if is_asked else "no"


class Split:
    """A coin between Random and another strategy; the detector sees no label the other one asked for."""

    sampled_detection = True

    def __init__(self, seed, other, share=0.2):
        self.seed = seed
        self.share = share
        self.random = Random(seed)
        self.other = other

    def chance(self, t, place, limit):
        if hasattr(self.other, "is_unsure"):
            share = float(self.other.is_unsure(place))
        else:
            share = self.other.chance(t, place, limit)
        return self.share * limit + (1.0 - self.share) * share

    def decide(self, t, place, limit):
        coin = uniform(self.seed, SPLIT_COIN, t * DRAWS)
        return (self.random if coin < self.share else self.other).decide(t, place, limit)


class SetSize:
    """All records whose conformal set has not one class, and a share of the others at random.

    The model tells it of each answer, and of each label that comes with its answer.
    """

    def __init__(self, seed, explore=0.05, **sets):
        self.seed = seed
        self.explore = explore
        self.threshold = Threshold(**sets)
        self.size, self.shares = 0, []
        self.weights = []

    def answered(self, shares):
        """Count the classes of a set; without a share above 0 there is no set."""
        self.shares = shares if any(share > 0.0 for share in shares) else []
        self.size = sum(share >= 1.0 - self.threshold.value for share in self.shares)

    def judge(self, label, weight):
        """Move the threshold by a label of the last answer, which stands for `weight` records."""
        if self.shares and weight:
            self.weights.append(weight)
            share = self.shares[label] if label < len(self.shares) else -1.0
            self.threshold.learn(share, relative(self.weights)[-1])

    def chance(self, t, place, limit):
        return self.explore if self.size == 1 else 1.0

    def decide(self, t, place, limit):
        if self.size != 1:
            return "yes"
        return "random" if uniform(self.seed, QUERY_DECISION, t * DRAWS) < self.explore else "no"


class Rate:
    """The least sure of the last records, at a rate that keeps four labels in hand."""

    def __init__(self, seed, scorer, window=1000, explore=0.1, anneal=0, dependence=0.0):
        self.seed = seed
        self.scorer = scorer
        self.window = window
        self.explore = explore
        self.anneal = anneal
        self.dependence = dependence
        self.codes = []
        self.let_go = 0.0

    def code(self, t, place):
        """Return the largest whole number of sixteenths that fit between 2^-16 and the score."""
        score = self.scorer.score(t, place)
        if score < 2**-16:
            return 0
        fraction, exponent = math.frexp(min(score, 1 - 2**-5))  # fraction from 0.5 to 1
        return (exponent + 15) * 16 + int((fraction - 0.5) * 32)

    def explored(self, place):
        """Return the share of the requests that goes to records whatever their score."""
        share, n = self.explore, len(place.recent)
        if self.anneal:
            share = max(share, min(1 - place.weight / self.anneal, 1))
        if self.dependence and n >= 100:
            if place.repeated > place.hits:
                return 1.0
            by_chance = sum(place.recent.count(c) ** 2 for c in set(place.recent)) / n**2
            if by_chance < 1:
                agreement = (place.repeated / n - by_chance) / (1 - by_chance)
                share = max(share, min(agreement / self.dependence, 1))
        return share

    def plan(self, t, place, limit):
        """Return the chance, the part of it that is random, what is let go, and the code."""
        rate = limit - place.reserved
        reserve = max(4 * (1 - rate), rate)
        in_hand = place.in_hand - self.let_go
        let_go = max(in_hand - reserve / rate, 0.0)
        share = min(rate * in_hand / reserve, 1.0)
        floor = min(self.explored(place) * max(share, rate), max(share, rate / 2))
        share = max(share, floor)
        code = self.code(t, place)
        window = self.codes[-self.window :]
        top = (share - floor) / (1 - floor) * (len(window) + 1) if floor < 1 else 0.0
        top -= sum(other_code > code for other_code in window)
        top /= 1 + window.count(code)
        return floor + (1 - floor) * min(max(top, 0.0), 1.0), floor, let_go, code

    def chance(self, t, place, limit):
        if limit <= place.reserved:
            return None
        chance, floor, _, _ = self.plan(t, place, limit)
        return chance if floor > 0 else None

    def decide(self, t, place, limit):
        if limit <= place.reserved:
            return "no"
        chance, floor, let_go, code = self.plan(t, place, limit)
        self.let_go += let_go
        self.codes.append(code)
        draw = uniform(self.seed, QUERY_DECISION, t * DRAWS)
        return "random" if draw < floor else "yes" if draw < chance else "no"


def is_reserved(seed, t, size):
    """Return whether record t is the one of its block of so many that is drawn for the evaluation."""
    if size == 0:
        return False
    block, place = divmod(t - 1, size)
    return ((bits(seed, EVALUATION_SLICE, block) >> 32) * size) >> 32 == place
