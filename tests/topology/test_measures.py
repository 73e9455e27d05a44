"""Measures per class of labels that come later: they use the class shares that were answered."""

from __future__ import annotations

import numpy as np
import pytest

from streamapp.worker.task.task import Task
from tests.naive import measures as naive
from tests.topology.partition import ALWAYS, PARTITION, Partition, config

SETTINGS = config(ALWAYS, pending_ttl_ms=1_000_000)


def rows(n: int) -> list[tuple[dict[str, object], str]]:
    """Return instances and their labels, of three classes; the third one comes late."""
    draw = np.random.default_rng(1)
    x = draw.uniform(0, 10, n).round(2).tolist()
    noise = draw.random(n) < 0.2
    names = ["abc"[min(int(v / 4), 2) if i > n // 2 else int(v > 5)] for i, v in enumerate(x)]
    names = ["a" if flip else name for name, flip in zip(names, noise, strict=True)]
    return [
        ({"features": {"x": v}, "id": f"i{i}"}, name)
        for i, (v, name) in enumerate(zip(x, names, strict=True))
    ]


def answered(partition: Partition, labels: list[str]) -> tuple[list[str], list[str], list[float]]:
    """Return label, prediction and share of the label of each answer, without those that knew no class."""
    given = [
        (label, one["label"], one["probabilities"].get(label, 0.0))
        for label, one in zip(labels, partition.predictions, strict=True)
    ]
    actual, predicted, shares = zip(*[row for row in given if row[1] is not None], strict=True)
    return list(actual), list(predicted), list(shares)


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("delay", [1, 40])
def test_labels_that_come_later_are_scored_by_the_answer_of_then(delay: int, restored: bool) -> None:
    partition, given = Partition(SETTINGS), rows(300)
    for start in range(0, 300, delay):
        part = given[start : start + delay]
        partition.instances(*(instance for instance, _ in part), at=start)
        if restored:
            partition.task = Task.from_units(PARTITION, SETTINGS, None, list(partition.task.cut().units()))
        partition.labels(*({"id": one["id"], "label": name} for one, name in part), at=start)
    actual, predicted, shares = answered(partition, [name for _, name in given])
    found = partition.model().measures()
    assert found is not None
    assert found.basis == "records"
    names = sorted(set(actual) | set(predicted))
    codes = {name: partition.model().schema.class_code(name) for name in names}
    cells = naive.confusion(
        [codes[name] for name in actual], [codes[name] for name in predicted], np.ones(len(actual)), 3
    )
    assert found.confusion == pytest.approx(cells)
    assert found.log_loss.value == pytest.approx(
        -np.log(np.maximum(shares, naive.LEAST)).mean(), rel=1e-4
    )  # answers are sent rounded


def test_a_label_whose_answer_is_no_longer_known_counts_by_its_own_features_alone() -> None:
    partition = Partition(SETTINGS)
    partition.instances(*({"features": {"x": i}, "id": f"i{i}", "label": "ab"[i % 2]} for i in range(40)))
    before = partition.model().measures()
    partition.labels({"id": "nobody", "label": "a", "features": {"x": 1}})
    assert repr(partition.model().measures()) == repr(before)
