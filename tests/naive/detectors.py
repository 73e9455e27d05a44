"""Drift detectors, the obvious way: every number is reckoned anew from the inputs."""

import itertools
import math
import statistics

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


class Adwin:
    """A window as a list of buckets (row, inputs), the oldest first."""

    BUCKETS = 5

    def __init__(
        self,
        confidence=0.002,
        clock=32,
        min_part=5,
        min_window=10,
        two_sided=False,
        keep_newer=True,
        compat=None,
    ):
        self.moa = compat == "moa"
        self.keep_newer = keep_newer
        self.confidence = confidence
        self.clock = clock
        self.min_part = min_part
        self.min_window = min_window
        self.two_sided = two_sided
        self.reset()

    def reset(self):
        self.ticks = 0
        self.window = []
        self.alarmed = False

    def inputs(self):
        return [one for _, bucket in self.window for one in bucket]

    def update(self, error):
        if self.alarmed and not self.keep_newer:
            self.reset()
        self.ticks += 1
        earlier = self.inputs()
        self.window.append((0, [error]))
        row = 0
        while sum(r == row for r, _ in self.window) > self.BUCKETS:
            first = next(i for i, (r, _) in enumerate(self.window) if r == row)
            merged = self.window[first][1] + self.window[first + 1][1]
            self.window[first : first + 2] = [(row + 1, merged)]
            row += 1
        if self.ticks % self.clock or len(self.inputs()) <= self.min_window:
            return "in-control"
        before = statistics.fmean((earlier or [0]) if self.moa else self.inputs())
        was_cut = False
        while self.is_cut():
            was_cut = True
            del self.window[0]
        risen = was_cut and statistics.fmean(self.inputs()) > before
        self.alarmed = was_cut and (self.two_sided or risen)
        return "drift" if self.alarmed else "in-control"

    def is_cut(self):
        inputs = self.inputs()
        n = len(inputs)
        older = 0
        for _, bucket in self.window:
            older += len(bucket)
            newer = n - older
            if min(older, newer) < self.min_part + 2 * self.moa:
                continue
            m = 1.0 / (1.0 / (older - self.min_part + 1) + 1.0 / (newer - self.min_part + 1))
            logarithm = math.log(2.0 * math.log(n)) - math.log(self.confidence)
            epsilon = (
                math.sqrt(2.0 / m * statistics.pvariance(inputs) * logarithm) + 2.0 / (3.0 * m) * logarithm
            )
            if abs(statistics.fmean(inputs[:older]) - statistics.fmean(inputs[older:])) > epsilon:
                return True
        return False


class NoDetector:
    """Never alarms."""

    def update(self, error):
        return "in-control"


DETECTORS = {
    "adwin": Adwin,
    "ddm": Ddm,
    "eddm": Eddm,
    "none": NoDetector,
    "page_hinkley": PageHinkley,
}
