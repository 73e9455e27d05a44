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
        self.least = None
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


class Seed:
    """A window as a list of blocks, each a list of inputs, the oldest first."""

    def __init__(
        self, confidence=0.05, block=32, merge_below=0.01, growth=0.8, merge_every=75, two_sided=False
    ):
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
    """The last inputs in a list; the sample is the whole older part."""

    def __init__(self, window=60, recent=30, confidence=0.005, two_sided=False, keep_newer=True):
        assert window == 2 * recent, "a twin draws no sample"
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
        self.seen = [*self.seen, error][-self.window :]
        if len(self.seen) < self.window:
            return "in-control"
        rise = sum(self.seen[self.recent :]) - sum(self.seen[: self.recent])
        if abs(rise) / self.recent <= 0.1 or self.p_value(abs(rise)) > self.confidence:
            return "in-control"
        self.seen = self.seen[self.recent :]
        self.alarmed = self.two_sided or rise > 0
        return "drift" if self.alarmed else "in-control"

    def p_value(self, reach):
        """Count the paths of one sample's steps up and the other's steps down that come as far as `reach`."""
        n = self.recent
        ways = {(0, 0): 1}  # (steps up, steps down) → paths that stay within
        for up in range(n + 1):
            for down in range(n + 1):
                if abs(up - down) < reach and (up, down) != (0, 0):
                    ways[up, down] = ways.get((up - 1, down), 0) + ways.get((up, down - 1), 0)
        return 1 - ways[n, n] / math.comb(2 * n, n)


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
