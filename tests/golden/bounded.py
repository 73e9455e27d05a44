"""Writes ``bounded.json`` with frouros 0.9.0 and streamcal 0.2.0: distances of windows, calibrated shares.

    python -m tests.golden.bounded    (where both are installed; they are no dependencies of ours)

Windows have counts by bin, and frouros gets each record as the number of its bin, so that its bins of equal
width are these bins. streamcal gets shares in the middle of its bins, without prior and without forgetting:
it then fits the increasing function to the same blocks as ours.
"""

import json
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_suffix(".json")
BINS = 10
SEEDS = range(1, 6)
PARTS = 32
LABELS = 500


def windows_of(seed):
    """Return the counts by bin of a reference and of a window, both without an empty bin."""
    draw = np.random.default_rng(seed)
    before = draw.multinomial(2000, draw.dirichlet(np.full(BINS, 50.0)))
    now = draw.multinomial(500, draw.dirichlet(np.full(BINS, 10.0)))
    return before + 1, now + 1


def labels_of(seed):
    """Return bins of claimed shares, and labels that are drawn from shares nearer to ½."""
    draw = np.random.default_rng(seed)
    part = draw.integers(0, PARTS, LABELS)
    return part, draw.random(LABELS) < 0.25 + 0.5 * (part + 0.5) / PARTS


def distances(before, now):
    from frouros.detectors.data_drift import PSI, HellingerDistance, KSTest

    found = {}
    records = [np.repeat(np.arange(float(BINS)), counts) for counts in (before, now)]
    for name, detector in (
        ("psi", PSI(num_bins=BINS)),
        ("hellinger", HellingerDistance(num_bins=BINS)),
        ("ks", KSTest()),
    ):
        detector.fit(X=records[0])
        result = detector.compare(X=records[1])[0]
        found[name] = float(result.statistic if name == "ks" else result.distance)
    return found


def calibrated(part, label):
    from streamcal.calibrators import StreamingIsotonicCalibrator

    calibrator = StreamingIsotonicCalibrator(n_bins=PARTS, decay=1.0, prior_weight=0.0)
    calibrator.update((part + 0.5) / PARTS, label.astype(int))
    return calibrator.calibrate((np.arange(PARTS) + 0.5) / PARTS).tolist()


if __name__ == "__main__":
    found = {
        str(seed): distances(*windows_of(seed)) | {"isotonic": calibrated(*labels_of(seed))} for seed in SEEDS
    }
    FILE.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")
