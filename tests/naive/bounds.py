"""Confidence bounds and their verdicts, the obvious way."""

import math

from tests.naive.criteria import REACHES

NATS = 2.0 / math.log(2.0)  # bits of a unit of scaled entropy


def hoeffding(options, n, **case):
    reach = REACHES[options.criterion](case["classes"])
    return math.sqrt(reach**2 * -math.log(options.delta) / (2.0 * n))


def mcdiarmid(options, n, **case):
    k = max(case["classes"], 2)
    if options.mcd_form == "cdt":
        constant = 6.0 * (2.0 * math.log2(2.71 * n) + math.log2(2.0 * n)) + 2.0
        return constant * math.sqrt(-math.log(options.delta) / (2.0 * n))
    first = math.log2(math.e) if options.mcd_form == "seed" else math.log2(math.e * n)
    bits = 6.0 * (k * first + math.log2(2.0 * n)) + 2.0 * math.log2(k)
    constant = {"gini": 8.0, "info_gain": bits, "entropy": bits / NATS}[options.criterion]
    return constant * math.sqrt(-math.log(options.delta) / (2.0 * n))


def c_tree(options, n, **case):
    if n <= 1.0:
        return math.inf
    scale = NATS if options.criterion == "info_gain" else 1.0
    h, t, d = case["depth"], case["records"], case["attributes"]
    if options.variant == "practical":
        spread = math.sqrt(math.log(n**2 * (h + 1) ** 2 * t * d) / n)
        information = options.criterion in ("info_gain", "entropy")
        return options.c * scale * spread * (math.log(n) if information else 1.0)
    nats = -math.log(options.delta or 1.0 / t)  # of 1/δ'
    nats += math.log((h + 1) * (h + 2) * (t + 1) ** 3 * d * max(n, case["tests"]))
    if options.criterion == "gini":
        return math.sqrt(8.0 / n * (math.log(2.0) + nats)) + 4.0 / math.sqrt(n)
    if options.criterion == "km":
        return 4.0 * math.sqrt((math.log(8.0) + nats) / n)
    bias = max(case["classes"], 2) / n
    return scale * (math.log(n) * math.sqrt(2.0 / n * (math.log(4.0) + nats)) + bias)


BOUNDS = {"hoeffding": hoeffding, "mcdiarmid": mcdiarmid, "c_tree": c_tree}


def is_enough(options, lead, epsilon):
    """Return whether a lead over the second best, or ε itself, is enough to split."""
    if options.bound == "hoeffding":
        return lead > options.bound_factor * epsilon or epsilon < options.tau
    if options.bound == "mcdiarmid":
        return lead > epsilon or epsilon < options.tau
    if options.tau > 0.0 and epsilon <= options.tau:
        return True
    return lead >= 2.0 * epsilon if options.variant == "theory" else lead > epsilon
