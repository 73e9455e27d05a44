"""The leaf axis of CDT's figures: how good a tree was at so many leaves (ALGORITHMS section 11 [D61]).

The paper logs pairs (measure, leaves) along a run and averages over streams. Here: of every stream the last
measure before the tree leaves a number of leaves; for every number the mean over the streams that had it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Curve = dict[int, float]
"""Measure by number of leaves, ascending."""

GRID_SIZE = 200
"""Values of its parameter that CDT tunes every tree over."""


def running_mean(hits: npt.NDArray[np.bool_]) -> Floats:
    """Return ``M_i = (1 - 1/i)·M_{i-1} + hit_i/i`` of Algorithm 3, float64[n]."""
    return np.cumsum(hits, dtype=np.float64) / np.arange(1, len(hits) + 1)


def leaf_curve(leaves: Sequence[int], measure: Sequence[float]) -> Curve:
    """Return the last measure at every number of leaves; both sequences in the order of the stream.

    A tree that comes back to a number of leaves (after a drift) counts with its last time.
    """
    if len(leaves) != len(measure):
        msg = f"leaves={len(leaves)} points must be as many as measure={len(measure)}"
        raise ValueError(msg)
    found = dict(zip(leaves, measure, strict=True))
    return dict(sorted((int(n), float(value)) for n, value in found.items()))


def mean_curve(curves: Sequence[Curve], share: float = 0.1) -> Curve:
    """Return the mean at every number of leaves over the curves that have it.

    Numbers that fewer than ``share`` of the curves have are left out.
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


def at_most(curve: Curve, leaves: int) -> float | None:
    """Return the measure at the largest number of leaves up to a limit, None if there is none."""
    fitting = [n for n in curve if n <= leaves]
    return curve[max(fitting)] if fitting else None


def grid(parameter: str, size: int = GRID_SIZE) -> Floats:
    """Return the values a parameter is tuned over, float64[size]: log-spaced, because the optima are small.

    ``c`` (C-Tree) from 1e-4 to just below 2, ``delta`` (the baselines) from 1e-10 to 0.999.
    """
    ranges = {"c": (1e-4, 2.0 * (1.0 - 1e-9)), "delta": (1e-10, 0.999)}
    if parameter not in ranges:
        msg = f"parameter={parameter!r} must be one of {', '.join(ranges)}"
        raise ValueError(msg)
    if size < 2:
        msg = f"size={size} must be at least 2"
        raise ValueError(msg)
    return np.geomspace(*ranges[parameter], size)


def tuned(values: Floats, finals: Floats) -> float:
    """Return the value with the best final measure (finals: float64[value, stream]), of equals the first."""
    means = np.asarray(finals, dtype=np.float64).reshape(len(values), -1).mean(axis=1)
    return float(values[int(np.argmax(means))])


def f1_of(label: npt.NDArray[np.int32], prediction: npt.NDArray[np.int32], positive: int) -> float:
    """Return F1 of one class over a whole prefix: the measure of the starred data sets of CDT's table 1."""
    hits = int(np.sum((label == positive) & (prediction == positive)))
    claims = int(np.sum(label == positive)) + int(np.sum(prediction == positive))
    return 2 * hits / claims if claims else 0.0
