"""Query strategies and the count budget, the obvious way (ALGORITHMS section 9)."""

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
QUERY_DECISION = 1


def mix(z):
    """Return splitmix64's finaliser of a word."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def uniform(seed, stream, counter):
    """Return the draw of a purpose at a counter (ALGORITHMS section 3.1)."""
    key = mix(mix(seed + GOLDEN & MASK) ^ (stream * 0xD1342543DE82EF95 & MASK))
    return (mix(key + (counter + 1) * GOLDEN & MASK) >> 11) * 2.0**-53


class CountBudget:
    """Open while the requests before a record are fewer than a share of the records with it."""

    def __init__(self, limit=1.0):
        self.limit = limit

    def is_open(self, requests, t):
        return requests / t < self.limit


class Always:
    def decide(self, t, share, limit):
        return True


class Never:
    def decide(self, t, share, limit):
        return False


class Random:
    def __init__(self, seed):
        self.seed = seed

    def decide(self, t, share, limit):
        return uniform(self.seed, QUERY_DECISION, t << 20) < limit


class VariableUncertainty:
    def __init__(self, step=0.01):
        self.step = step
        self.theta = 1.0

    def decide(self, t, share, limit):
        if share < self.theta:
            self.theta *= 1.0 - self.step
            return True
        self.theta *= 1.0 + self.step
        return False
