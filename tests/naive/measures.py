"""Measures per class, the obvious way: from the list of judged answers with their weights."""

import numpy as np

LEAST = np.finfo(float).eps


def confusion(label, prediction, weight, classes):
    found = np.zeros((classes, classes))
    np.add.at(found, (label, prediction), weight)
    return found


def log_losses(label, shares):
    return -np.log(np.maximum(shares[np.arange(len(label)), label], LEAST))


def brier_scores(label, shares):
    return np.square(shares - np.eye(shares.shape[1])[label]).sum(axis=1)


def auc(positive, score, weight):
    """Return the weighted share of pairs (positive, negative) in order; equal scores count one half."""
    ours, others = (np.flatnonzero(positive == side) for side in (True, False))
    gap = score[ours][:, None] - score[others]
    pairs = weight[ours][:, None] * weight[others]
    return float((pairs * ((gap > 0) + 0.5 * (gap == 0))).sum() / pairs.sum())


def calibration_error(label, prediction, shares, weight, bins=15):
    claim = shares[np.arange(len(label)), prediction]
    at = np.minimum((claim * bins).astype(int), bins - 1)
    gaps = np.zeros(bins)
    np.add.at(gaps, at, weight * ((label == prediction) - claim))
    return np.abs(gaps).sum() / weight.sum()
