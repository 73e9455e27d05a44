"""River's forests on rows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.datasets import Rows


def accuracy(rows: Rows, learner: str, members: int, seed: int) -> float:
    """Return the share of right predictions, test-then-train over all rows, of River's forest of that name.

    River's defaults apply, except for the number of members, the seed and the nominal attributes. Raises
    ImportError if River is not installed.
    """
    forest = _forest(rows, learner, members, seed)
    right = 0
    for values, label in zip(rows.x.tolist(), rows.y.tolist(), strict=True):
        record = dict(enumerate(values))
        right += forest.predict_one(record) == label
        forest.learn_one(record, label)
    return right / len(rows.y)


def accuracies(rows: Rows, learner: str, members: int, seeds: Sequence[int]) -> list[float]:
    """Return the share of right predictions for each seed."""
    return [accuracy(rows, learner, members, seed) for seed in seeds]


def _forest(rows: Rows, learner: str, members: int, seed: int) -> Any:
    from river import ensemble, forest, tree

    nominal = [i for i, values in enumerate(rows.attributes) if values is not None]
    if learner == "arf":
        return forest.ARFClassifier(n_models=members, seed=seed, nominal_attributes=nominal)
    if learner == "srp":
        member = tree.HoeffdingTreeClassifier(grace_period=50, delta=0.01, nominal_attributes=nominal)
        return ensemble.SRPClassifier(model=member, n_models=members, seed=seed)
    if learner == "ozaboost":
        member = tree.HoeffdingTreeClassifier(nominal_attributes=nominal)
        return ensemble.AdaBoostClassifier(model=member, n_models=members, seed=seed)
    return ensemble.LeveragingBaggingClassifier(
        model=tree.HoeffdingTreeClassifier(nominal_attributes=nominal), n_models=members, seed=seed
    )
