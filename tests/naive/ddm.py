"""DDM, the obvious way (ALGORITHMS section 10)."""

import math

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


class NoDetector:
    """Never alarms."""

    def update(self, error):
        return "in-control"
