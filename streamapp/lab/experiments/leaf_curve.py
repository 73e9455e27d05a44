"""Leaf curve: the measure of a tree at every number of leaves, CDT's axis [D61].

The paper logs pairs (measure, leaves) along a run and averages over streams. Here, each stream contributes
its last measure before the tree leaves a number of leaves. The curve has, for each number, the mean over
the streams that reached it.

In a run, a tree that grows slowly reaches its tenth leaf late, when its running mean has long forgotten
the first records; a tree that grows fast reaches it early. `at_sizes` compares trees of one size after the
same records instead, which different values of the parameter have grown by the end of the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Curve = dict[int, float]
"""Measure by number of leaves, ascending."""

GRID_SIZE = 200
"""Values of its parameter over which CDT tunes every tree."""
LEAST_C, MOST_C = 1e-4, 1.999
LEAST_DELTA, MOST_DELTA = 1e-10, 0.999


def leaf_curve(leaves: Sequence[int], measure: Sequence[float]) -> Curve:
    """Return the last measure at every number of leaves; both sequences in the order of the stream.

    If a tree returns to a number of leaves (after a drift), the last time counts.
    """
    if len(leaves) != len(measure):
        msg = f"leaves={len(leaves)} points must equal measure={len(measure)} points"
        raise ValueError(msg)
    last = dict(zip(leaves, measure, strict=True))
    return dict(sorted((int(n), float(value)) for n, value in last.items()))


def mean_curve(curves: Sequence[Curve], share: float = 0.1) -> Curve:
    """Return the mean at every number of leaves over the curves that have it.

    Numbers that less than ``share`` of the curves have are left out.
    """
    if not curves:
        msg = "curves=[] must hold at least one curve"
        raise ValueError(msg)
    if not 0.0 <= share <= 1.0:
        msg = f"share={share} must be from 0 to 1"
        raise ValueError(msg)
    every = sorted({n for curve in curves for n in curve})
    means = {}
    for n in every:
        values = [curve[n] for curve in curves if n in curve]
        if len(values) >= share * len(curves):
            means[n] = float(np.mean(values))
    return means


def at_sizes(ends: Iterable[tuple[int, float]], sizes: Sequence[int]) -> Curve:
    """Return the measure that a tree of each size would have at the end of a stream.

    ends: (leaves, measure) at the end, one pair for each value of the parameter. Between two sizes that
    occur, the measure is linear in the logarithm of leaves; beyond them there is none. Values that end
    with the same number of leaves count with their mean.
    """
    by_size: dict[int, list[float]] = {}
    for leaves, measure in ends:
        by_size.setdefault(leaves, []).append(measure)
    ascending = sorted(by_size)
    if not ascending:
        return {}
    means = [float(np.mean(by_size[size])) for size in ascending]
    inside = [size for size in sizes if ascending[0] <= size <= ascending[-1]]
    return {size: float(np.interp(np.log(size), np.log(ascending), means)) for size in inside}


def grid(parameter: str, size: int = GRID_SIZE) -> Floats:
    """Return the values over which a parameter is tuned, float64[size], ascending; bounds have equal
    ratios.

    ``c`` (C-Tree) goes from 1e-4 to just below 2; ε is proportional to it. ``delta`` (the baselines) goes
    from 1e-10 to 0.999, evenly in the logarithm of ln(1/δ), of which ε is the square root. Evenly in the
    logarithm of δ, all values but the last one or two would be too small for any split of these streams.
    """
    if parameter not in ("c", "delta"):
        msg = f"parameter={parameter!r} must be one of c, delta"
        raise ValueError(msg)
    if size < 2:
        msg = f"size={size} must be at least 2"
        raise ValueError(msg)
    if parameter == "c":
        return np.geomspace(LEAST_C, MOST_C, size)
    return np.exp(-np.geomspace(-np.log(LEAST_DELTA), -np.log(MOST_DELTA), size))
