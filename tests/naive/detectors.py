"""Drift detectors, the obvious way: every number is reckoned anew from the inputs."""

import itertools
import math
import statistics
from typing import Any

from tests.naive.window_detectors import Adwin, Kswin, Seed, Stepd

LEVELS = ("in-control", "warning", "drift")


class Ddm:
    """Error rate and deviation against their smallest sum; ``update`` returns the level."""

    def __init__(self, warm_up=30, warning=2.0, drift=3.0, min_errors=0):
        self.warm_up = warm_up
        self.warning = warning
        self.drift = drift
        self.min_errors = min_errors
        self.reset()

    def reset(self):
        self.seen = []
        self.p = 1.0
        self.s = 0.0
        self.p_min = math.inf
        self.s_min = math.inf
        self.alarmed = False

    def update(self, error):
        """Take in 1 for a wrong prediction, 0 for a right one."""
        if self.alarmed:
            self.reset()
        self.seen.append(error)
        n = len(self.seen)
        # p begins at 1 and the first input, divided by 1, replaces it: p is the mean of the inputs.
        self.p += (error - self.p) / n
        self.s = math.sqrt(self.p * (1.0 - self.p) / n)
        if n + 1 < self.warm_up:
            return "in-control"
        if self.p + self.s <= self.p_min + self.s_min and sum(self.seen) >= self.min_errors:
            self.p_min, self.s_min = self.p, self.s
        if n + 1 > self.warm_up and self.p + self.s > self.p_min + self.drift * self.s_min:
            self.alarmed = True
            return "drift"
        if self.p + self.s > self.p_min + self.warning * self.s_min:
            return "warning"
        return "in-control"


class Eddm:
    """Mean distance between errors plus two deviations, against the largest value it had."""

    def __init__(self, warm_up=30, warning=0.95, drift=0.9, compat=None):
        self.moa = compat == "moa"
        self.warm_up = warm_up
        self.warning = warning
        self.drift = drift
        self.reset()

    def reset(self):
        self.n = 0
        self.errors = [0]  # positions, after an imagined one at the start
        self.largest = 0.0
        self.level = "in-control"

    def update(self, error):
        if self.level == "drift":
            self.reset()
        self.n += 1
        if error:
            self.errors.append(self.n)
            self.level = self.judge()
        return self.level

    def judge(self):
        distances = [after - before for before, after in itertools.pairwise(self.errors)]
        deviation = 0.0
        if len(distances) > 1:
            deviation = statistics.pstdev(distances) if self.moa else statistics.stdev(distances)
        reach = statistics.fmean(distances) + 2.0 * deviation
        if self.n + self.moa <= self.warm_up:
            return "in-control"
        if reach > self.largest + 1e-12:
            self.largest = reach
            return "in-control"
        if len(distances) <= self.warm_up:
            return "in-control"
        if reach / self.largest < self.drift:
            return "drift"
        return "warning" if reach / self.largest < self.warning else "in-control"


class PageHinkley:
    """Deviations from the mean so far, summed up with a memory, against the least (largest) sum."""

    def __init__(
        self, warm_up=30, tolerance=0.005, threshold=50.0, memory=0.9999, two_sided=False, compat=None
    ):
        self.moa = compat == "moa"
        self.warm_up = warm_up
        self.tolerance = tolerance
        self.threshold = threshold
        self.memory = memory
        self.two_sided = two_sided
        self.reset()

    def reset(self):
        self.seen = []
        self.rises = [0.0]
        self.falls = [0.0]
        self.alarmed = False

    def update(self, error):
        if self.alarmed:
            self.reset()
        self.seen.append(error)
        deviation = error - sum(self.seen) / len(self.seen)
        self.rises.append(self.memory * self.rises[-1] + deviation - self.tolerance)
        self.falls.append(self.memory * self.falls[-1] + deviation + self.tolerance)
        rise = self.rises[-1] - min(self.rises[1:])
        fall = max(self.falls[1:]) - self.falls[-1]
        if self.moa:
            self.alarmed = len(self.seen) + 1 >= self.warm_up and self.rises[-1] > self.threshold
        elif len(self.seen) >= self.warm_up:
            self.alarmed = rise > self.threshold or (self.two_sided and fall > self.threshold)
        return "drift" if self.alarmed else "in-control"


class Cusum:
    """Errors above their mean so far, summed up from the last time at which the sum was 0."""

    def __init__(self, warm_up=30, tolerance=0.005, threshold=50.0):
        self.warm_up = warm_up
        self.tolerance = tolerance
        self.threshold = threshold
        self.reset()

    def reset(self):
        self.seen = []
        self.steps = []
        self.alarmed = False

    def update(self, error):
        if self.alarmed:
            self.reset()
        self.seen.append(error)
        self.steps.append(error - statistics.fmean(self.seen) - self.tolerance)
        tails = itertools.accumulate(reversed(self.steps))
        self.alarmed = len(self.seen) >= self.warm_up and max(tails) > self.threshold
        return "drift" if self.alarmed else "in-control"


class HddmA:
    """Means of all prefixes of the inputs; the cuts are those with the best bounds."""

    def __init__(self, drift=0.001, warning=0.005, fall="restart"):
        self.drift = drift
        self.warning = warning
        self.fall = fall
        self.reset()

    def reset(self):
        self.seen = []
        self.low = self.high = 0
        self.alarmed = False

    def mean(self, n):
        return sum(self.seen[:n]) / n

    def bound(self, n):
        return math.sqrt(math.log(1.0 / self.drift) / (2.0 * n))

    def differs(self, cut, difference, confidence):
        n = len(self.seen)
        m = (n - cut) / (cut * n)
        return cut < n and difference >= math.sqrt(m / 2.0 * math.log(2.0 / confidence))

    def update(self, error):
        if self.alarmed:
            self.reset()
        self.seen.append(error)
        n = len(self.seen)
        self.low, self.high = self.low or n, self.high or n
        if self.mean(self.low) + self.bound(self.low) >= self.mean(n) + self.bound(n):
            self.low = n
        if self.mean(self.high) - self.bound(self.high) <= self.mean(n) - self.bound(n):
            self.high = n
        rise, fall = self.mean(n) - self.mean(self.low), self.mean(self.high) - self.mean(n)
        if self.differs(self.low, rise, self.drift):
            self.alarmed = True
            return "drift"
        level = "warning" if self.differs(self.low, rise, self.warning) else "in-control"
        if self.fall != "ignore" and self.differs(self.high, fall, self.drift):
            if self.fall == "drift":
                self.alarmed = True
                return "drift"
            self.reset()
        return level


class HddmW:
    """Moving averages of slices of the inputs, each computed from its first input on."""

    def __init__(self, drift=0.001, warning=0.005, weight=0.05, fall="ignore"):
        self.drift = drift
        self.warning = warning
        self.weight = weight
        self.fall = fall
        self.reset()

    def reset(self):
        self.seen = []
        self.low = self.high = None  # ends of the samples before the cuts
        self.alarmed = False

    def sample(self, start, end):
        """Return average and squared weights of a slice: the first input has what the others leave."""
        n = end - start
        weights = [(1.0 - self.weight) ** (n - 1)]
        weights += [self.weight * (1.0 - self.weight) ** (n - 1 - i) for i in range(1, n)]
        average = sum(w * x for w, x in zip(weights, self.seen[start:end], strict=True))
        return average, sum(w * w for w in weights)

    def bound(self, squares, confidence):
        return math.sqrt(squares * math.log(1.0 / confidence) / 2.0)

    def end_of_bound(self, cut, side):
        average, squares = self.sample(0, cut)
        return average + side * self.bound(squares, self.drift)

    def gap(self, cut):
        """Return by how much the average after a cut is higher, and the squared weights of both samples."""
        before, after = self.sample(0, cut), self.sample(cut, len(self.seen))
        return after[0] - before[0], before[1] + after[1]

    def update(self, error):
        if self.alarmed:
            self.reset()
        self.seen.append(error)
        n = len(self.seen)
        level = "in-control"
        if self.low is None or self.end_of_bound(n, 1) < self.end_of_bound(self.low, 1) - 1e-15:
            self.low = n
        else:
            rise, squares = self.gap(self.low)
            if rise > self.bound(squares, self.drift):
                self.alarmed = True
                return "drift"
            if rise > self.bound(squares, self.warning):
                level = "warning"
        highest = 0.0 if self.high is None else self.end_of_bound(self.high, -1)
        if self.end_of_bound(n, -1) > highest + 1e-15:
            self.high = n
        elif self.fall != "ignore" and self.high is not None:
            rise, squares = self.gap(self.high)
            if -rise > self.bound(squares, self.drift):
                if self.fall == "drift":
                    self.alarmed = True
                    return "drift"
                self.reset()
        return level


class Rddm:
    """DDM over lists: all inputs, those since the last start, and which of them begin a warning."""

    def __init__(self, warm_up=129, warning=1.773, drift=2.258, longest=40_000, stable=7000, warnings=1400):
        self.warm_up = warm_up
        self.warning = warning
        self.drift = drift
        self.longest = longest
        self.stable = stable
        self.warnings = warnings
        self.kept = []  # (number, input), the last ones
        self.concept = []
        self.least: Any = None
        self.number = 0
        self.warned = None
        self.pending = None

    def rate(self, n):
        p = statistics.fmean(self.concept[:n])
        return p, math.sqrt(p * (1 - p) / n)

    def lower(self, n):
        if self.least is None or sum(self.rate(n)) < sum(self.least) - 1e-15:
            self.least = self.rate(n)

    def start(self):
        if self.pending == "drift":
            self.least = None
        if self.warned is not None and self.kept[0][0] <= self.warned:
            self.kept = [kept for kept in self.kept if kept[0] >= self.warned]
        self.concept = [error for _, error in self.kept]
        if self.pending == "drift":
            for n in range(self.warm_up + 1, len(self.concept) + 1):
                self.lower(n)
        self.warned = self.pending = None

    def update(self, error):
        if self.pending:
            self.start()
        self.number += 1
        self.kept = [*self.kept, (self.number, error)][-self.stable :]
        self.concept.append(error)
        n = len(self.concept)
        if n + 1 <= self.warm_up:
            return "in-control"
        self.lower(n)
        level = sum(self.rate(n))
        if level > self.least[0] + self.drift * self.least[1]:
            self.pending = "drift"
            if self.warned is None:
                self.kept = self.kept[-1:]
            return "drift"
        if level > self.least[0] + self.warning * self.least[1]:
            if self.warned is not None and self.warned + self.warnings <= self.number:
                self.pending = "drift"
                self.kept = self.kept[-1:]
                self.warned = None
                return "drift"
            self.warned = self.warned or self.number
            return "warning"
        self.warned = None
        if n + 1 > self.longest:
            self.pending = "long"
        return "in-control"


class NoDetector:
    """Never alarms."""

    def update(self, error):
        return "in-control"


DETECTORS = {
    "adwin": Adwin,
    "cusum": Cusum,
    "ddm": Ddm,
    "eddm": Eddm,
    "hddm_a": HddmA,
    "hddm_w": HddmW,
    "kswin": Kswin,
    "none": NoDetector,
    "page_hinkley": PageHinkley,
    "rddm": Rddm,
    "seed": Seed,
    "stepd": Stepd,
}
