"""Drift detectors with a window, the obvious way: the inputs are in lists, every number is computed again."""

import itertools
import math
import statistics

from tests.naive.queries import uniform

DETECTOR_SAMPLE = 20


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


class Stepd:
    """All inputs in a list: a test of two proportions by its end and its rest."""

    def __init__(self, window=30, drift=0.003, warning=0.05, two_sided=False, compat=None):
        self.window = window
        self.drift = drift
        self.warning = warning
        self.two_sided = two_sided
        self.moa = compat == "moa"
        self.reset()

    def reset(self):
        self.seen = []
        self.alarmed = False

    def update(self, error):
        if self.alarmed:
            self.reset()
        self.seen.append(error)
        if len(self.seen) < 2 * self.window:
            return "in-control"
        chance = self.p_value(self.seen[: -self.window], self.seen[-self.window :])
        self.alarmed = chance < self.drift
        return "drift" if self.alarmed else "warning" if chance < self.warning else "in-control"

    def p_value(self, older, recent):
        rate = statistics.fmean(older + recent)
        inverse = 1 / len(older) + 1 / len(recent)
        rise = statistics.fmean(recent) - statistics.fmean(older)
        beyond = (abs(rise) if self.two_sided or self.moa else rise) - inverse / 2
        if rate in (0, 1):
            return 0.0 if self.moa else 1.0
        if beyond <= 0 and not self.moa:
            return 1.0
        normal = statistics.NormalDist()
        return 2 * (1 - normal.cdf(abs(beyond) / math.sqrt(rate * (1 - rate) * inverse)))


class Seed:
    """A window as a list of blocks, each a list of inputs, the oldest first."""

    def __init__(
        self,
        confidence=0.05,
        block=32,
        merge_below=0.01,
        growth=0.8,
        merge_every=75,
        two_sided=False,
        compat=None,
    ):
        assert compat is None, "MOA's running variance has no twin; its levels are golden"
        self.confidence = confidence
        self.block = block
        self.merge_below = merge_below
        self.growth = growth
        self.merge_every = merge_every
        self.two_sided = two_sided
        self.blocks = []
        self.n = self.added = 0

    def update(self, error):
        if self.n % self.block == 0:
            if len(self.blocks) > 1 and self.added > self.merge_every:
                self.added = 0
                self.merge()
            self.added += bool(self.blocks)
            self.blocks.append([])
        self.blocks[-1].append(error)
        self.n += 1
        if self.n % self.block or len(self.blocks) < 2:
            return "in-control"
        before = statistics.fmean(itertools.chain(*self.blocks))
        cut = next((cut for cut in range(len(self.blocks) - 1, 0, -1) if self.differ(cut)), None)
        if cut is None:
            return "in-control"
        del self.blocks[:cut]
        has_risen = statistics.fmean(itertools.chain(*self.blocks)) > before
        return "drift" if self.two_sided or has_risen else "in-control"

    def merge(self):
        merged = [self.blocks[-1]]
        for distance, older in enumerate(reversed(self.blocks[:-1]), 1):
            limit = distance * self.merge_below * self.growth
            if abs(statistics.fmean(older) - statistics.fmean(merged[0])) < limit:
                merged[0] = older + merged[0]
            else:
                merged.insert(0, older)
        self.blocks = merged

    def differ(self, cut):
        older = [*itertools.chain(*self.blocks[:cut])]
        newer = [*itertools.chain(*self.blocks[cut:])]
        inputs = older + newer
        inverse = 1 / len(older) + 1 / len(newer)
        logarithm = math.log(2 * math.log(len(inputs)) / self.confidence)
        variance = statistics.pvariance(inputs)
        bound = math.sqrt(2 * inverse * variance * logarithm) + 2 / 3 * logarithm * inverse
        return abs(statistics.fmean(newer) - statistics.fmean(older)) > bound


class Kswin:
    """The last inputs in a list, and a sample of the older ones drawn from an urn."""

    def __init__(self, window=100, recent=30, confidence=0.005, two_sided=False, keep_newer=True):
        self.n = 0
        self.window = window
        self.recent = recent
        self.confidence = confidence
        self.two_sided = two_sided
        self.keep_newer = keep_newer
        self.seen = []
        self.alarmed = False

    def update(self, error):
        if self.alarmed and not self.keep_newer:
            self.seen = []
        self.alarmed = False
        self.n += 1
        self.seen = [*self.seen, error][-self.window :]
        if len(self.seen) < self.window:
            return "in-control"
        rise = sum(self.seen[-self.recent :]) - self.sampled(sorted(self.seen[: -self.recent], reverse=True))
        if abs(rise) / self.recent <= 0.1 or self.p_value(abs(rise)) > self.confidence:
            return "in-control"
        self.seen = self.seen[-self.recent :]
        self.alarmed = self.two_sided or rise > 0
        return "drift" if self.alarmed else "in-control"

    def sampled(self, urn):
        """Draw as many as the recent inputs, errors first in the urn; return the errors."""
        if len(urn) == self.recent:
            return sum(urn)
        places = [uniform(0, DETECTOR_SAMPLE, 1024 * self.n + draw) for draw in range(self.recent)]
        return sum(urn.pop(int(place * len(urn))) for place in places)

    def p_value(self, reach):
        """Count the paths of one sample's steps up and the other's steps down that come as far as `reach`."""
        n = self.recent
        ways = {(0, 0): 1}  # (steps up, steps down) → paths that stay within
        for up in range(n + 1):
            for down in range(n + 1):
                if abs(up - down) < reach and (up, down) != (0, 0):
                    ways[up, down] = ways.get((up - 1, down), 0) + ways.get((up, down - 1), 0)
        return 1 - ways[n, n] / math.comb(2 * n, n)
