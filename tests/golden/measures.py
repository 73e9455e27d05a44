"""Writes ``measures.json`` anew with scikit-learn 1.9 and River 0.26: figures of the same weighted answers.

    python -m tests.golden.measures    (where both are installed; scikit-learn is no dependency of ours)

A share is a multiple of 1/4096, so that it has the same bits everywhere and equal shares occur. A weight is
the importance of a label. ``calibration_curve`` of scikit-learn takes no weights: it gets each answer as
often as its weight.
"""

import json
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_suffix(".json")
PARTS = 4096
ROWS = 400
BINS = 15
THRESHOLDS = 2000
"""Thresholds of River's ROC curve, which is not exact either."""


def answers(classes, seed, weighted, without=()):
    """Return labels, predictions, shares in parts and weights; without: classes that have no labels.

    Every fiftieth answer rules its label out: the class has a share of 0.
    """
    random = np.random.default_rng(seed)
    label = random.choice([c for c in range(classes) if c not in without], ROWS)
    parts = random.integers(0, 100, (ROWS, classes)) + 40 * np.eye(classes, dtype=np.int64)[label]
    parts[::50][np.arange(ROWS // 50), label[::50]] = 0
    shares = parts * PARTS // parts.sum(axis=1, keepdims=True)
    prediction = shares.argmax(axis=1)
    shares[np.arange(ROWS), prediction] += PARTS - shares.sum(axis=1)
    weight = random.choice([1, 2, 20], ROWS) if weighted else np.ones(ROWS, dtype=np.int64)
    return label, prediction, shares, weight


CASES = {
    "two classes": (2, 1, False),
    "two classes, weighted": (2, 2, True),
    "three classes": (3, 3, False),
    "three classes, weighted": (3, 4, True),
    "seven classes, weighted": (7, 5, True),
    "four classes, one without labels": (4, 6, True, (2,)),
}


def by_scikit_learn(label, prediction, shares, weight):
    from sklearn import metrics
    from sklearn.calibration import calibration_curve

    k = shares.shape[1]
    codes, present = list(range(k)), sorted(set(label.tolist()))
    with_weights = {"sample_weight": weight}
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        label, prediction, labels=codes, zero_division=np.nan, **with_weights
    )
    claim, hit = shares[np.arange(len(label)), prediction], label == prediction
    hits, claims = calibration_curve(np.repeat(hit, weight), np.repeat(claim, weight), n_bins=BINS)
    in_bins = np.histogram(claim, np.linspace(0, 1, BINS + 1), weights=weight)[0]
    areas = [
        metrics.roc_auc_score(label == c, shares[:, c], **with_weights) if c in present else None
        for c in codes
    ]
    figures = {
        "confusion": metrics.confusion_matrix(label, prediction, labels=codes, **with_weights).tolist(),
        "precision": listed(precision),
        "recall": listed(recall),
        "f1": listed(f1),
        "kappa": metrics.cohen_kappa_score(label, prediction, labels=codes, **with_weights),
        "balanced_accuracy": metrics.balanced_accuracy_score(label, prediction, **with_weights),
        "log_loss": metrics.log_loss(label, shares, labels=codes, **with_weights),
        "brier": metrics.brier_score_loss(
            label, shares[:, 1] if k == 2 else shares, labels=codes, **with_weights
        ),
        "class_auc": areas,
        "auc": float(np.mean([area for area in areas if area is not None])),
        "calibration_error": float(np.abs(hits - claims) @ in_bins[in_bins > 0] / weight.sum()),
    }
    if present == codes:
        figures["auc"] = metrics.roc_auc_score(
            label, shares[:, 1] if k == 2 else shares, multi_class="ovr", **with_weights
        )
    return figures


def by_river(label, prediction, shares, weight):
    from river import metrics

    k = shares.shape[1]
    matrix = metrics.ConfusionMatrix()
    counted = {"kappa": metrics.CohenKappa(matrix), "balanced_accuracy": metrics.BalancedAccuracy(matrix)}
    scored = {"log_loss": metrics.LogLoss() if k == 2 else metrics.CrossEntropy()}
    if k == 2:
        scored["auc"] = metrics.ROCAUC(n_thresholds=THRESHOLDS)
    for actual, answered, row, w in zip(
        label.tolist(), prediction.tolist(), shares.tolist(), weight.tolist(), strict=True
    ):
        matrix.update(actual, answered, w)
        for metric in scored.values():
            metric.update(bool(actual), row[1], w) if k == 2 else metric.update(
                actual, dict(enumerate(row)), w
            )
    return {
        "confusion": [[matrix[c][p] for p in range(k)] for c in range(k)],
        "precision": [metrics.Precision(matrix, pos_val=c).get() for c in range(k)],
        "recall": [metrics.Recall(matrix, pos_val=c).get() for c in range(k)],
        "f1": [metrics.F1(matrix, pos_val=c).get() for c in range(k)],
        **{name: metric.get() for name, metric in {**counted, **scored}.items()},
    }


def listed(values):
    return [None if np.isnan(value) else float(value) for value in values]


def main():
    held = {}
    for name, case in CASES.items():
        label, prediction, parts, weight = answers(*case)
        given = label, prediction, parts / PARTS, weight
        held[name] = {
            "label": label.tolist(),
            "prediction": prediction.tolist(),
            "parts": parts.tolist(),
            "weight": weight.tolist(),
            "scikit-learn": by_scikit_learn(*given),
            "river": by_river(*given),
        }
    FILE.write_text(json.dumps(held, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
