"""OSM and CGD, the obvious way: the weight a leaf waits after a failed attempt."""

import math

from tests.naive.criteria import conditional

FARTHEST = 100_000


def osm(best, second_gap, impurity, n, enough, grace_period):
    """Return the interval of OSM.

    best: class distributions of the best test's branches; enough(weight) is the gap that suffices.
    """
    branches = [list(branch) for branch in best]
    filled = [branch for branch in branches if sum(branch) > 0.0]
    if not filled:
        return max(grace_period, FARTHEST)
    purest = min(filled, key=impurity)
    majority = purest.index(max(purest))
    second = conditional(impurity, branches) + second_gap
    have = purest[majority]

    def leads(x):
        purest[majority] = have + x
        return second - conditional(impurity, branches) > enough(n + x)

    if not leads(FARTHEST):
        return max(grace_period, FARTHEST)
    # The lead grows with x: the first hundred that leads, then the first unit.
    hundred = next(x for x in range(0, FARTHEST + 1, 100) if leads(x))
    return max(grace_period, next(x for x in range(max(0, hundred - 99), hundred + 1) if leads(x)))


def cgd(gap, n, weight_for):
    """Return the interval of CGD; weight_for(gap) is the weight from which a gap suffices."""
    return min(weight_for(gap) - n if gap > 0.0 else FARTHEST, FARTHEST)


def interval(tree, leaf, ranking):
    """Return the interval of a leaf after an attempt that failed on a ranking (best, second), or None."""
    options = tree.options
    grace = options.grace_period
    if (
        options.schedule not in ("osm", "cgd")
        or ranking is None
        or ranking[0].attribute is None
        or not ranking[0].merit >= 1e-10
    ):
        return grace
    best, second = ranking
    n, classes = leaf.evidence(), len(leaf.distribution) if options.moa else tree.classes
    square = math.log(1.0 / options.delta) * tree.merit_range(classes) ** 2 / 2.0
    tie = square / options.tau**2 - n if options.tau > 0.0 else math.inf
    if tie <= 0.0:
        return grace
    factor = options.bound_factor
    if options.schedule == "cgd":
        wait = cgd(best.merit - second.merit, n, lambda gap: square * factor**2 / gap**2)
    else:
        wait = osm(
            best.branches,
            best.merit - second.merit,
            tree.impurity(),
            n,
            lambda weight: factor * math.sqrt(square / weight),
            grace,
        )
    return max(1, math.ceil(min(tie, wait)))
