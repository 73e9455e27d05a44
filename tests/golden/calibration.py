"""Writes ``calibration.json`` with scikit-learn 1.9: calibrators fitted to the same weighted labels.

    python -m tests.golden.calibration    (where it is installed; scikit-learn is no dependency of ours)

A share is a multiple of 1/64, so that it has the same bits everywhere and equal shares occur.
``CalibratedClassifierCV`` gets a classifier whose probabilities are its records.
"""

import json
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_suffix(".json")
PARTS = 64
ROWS = {2: 600, 3: 400}
"""Classes → labels."""
ASKED = 40


def labels_of(classes, seed):
    """Return shares in parts that are too sure, labels drawn from the true ones, and weights."""
    draw = np.random.default_rng(seed)
    truth = draw.dirichlet(np.ones(classes), ROWS[classes])
    sure = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    parts = np.floor(sure * PARTS).astype(np.int64)
    parts[np.arange(len(parts)), sure.argmax(axis=1)] += PARTS - parts.sum(axis=1)
    label = (truth.cumsum(axis=1) < draw.random((len(truth), 1))).sum(axis=1)
    return parts, label, draw.choice([1, 2, 5], len(label))


def classifier(classes):
    from sklearn.base import BaseEstimator, ClassifierMixin

    class AsGiven(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        classes_ = np.arange(classes)

        def fit(self, x, y):
            return self

        def __sklearn_is_fitted__(self):
            return True

        def predict_proba(self, x):
            return np.asarray(x)

        def predict(self, x):
            return np.asarray(x).argmax(axis=1)

    return AsGiven()


def fitted(classes, seed):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    parts, label, weight = labels_of(classes, seed)
    shares, grid = parts / PARTS, np.arange(PARTS + 1) / PARTS
    whole = CalibratedClassifierCV(FrozenEstimator(classifier(classes)), method="isotonic")
    whole.fit(shares, label, sample_weight=weight)
    held = {
        "parts": parts.tolist(),
        "label": label.tolist(),
        "weight": weight.tolist(),
        "isotonic": [],
        "probabilities": whole.predict_proba(shares[:ASKED]).tolist(),
        "logistic": [],
    }
    inner = np.clip(shares, 1 / (2 * PARTS), 1 - 1 / (2 * PARTS))
    for c in range(classes):
        is_class = label == c
        curve = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        held["isotonic"].append(
            curve.fit(shares[:, c], is_class, sample_weight=weight).predict(grid).tolist()
        )
        x = np.log(inner[:, c] / (1 - inner[:, c])).reshape(-1, 1)
        line = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, is_class, sample_weight=weight)
        held["logistic"].append(
            {
                "slope": float(line.coef_[0, 0]),
                "intercept": float(line.intercept_[0]),
                "log_loss": float(log_loss(is_class, line.predict_proba(x), sample_weight=weight)),
            }
        )
    return held


def main():
    held = {f"{classes} classes": fitted(classes, seed) for classes, seed in ((2, 1), (3, 2))}
    FILE.write_text(json.dumps(held, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
