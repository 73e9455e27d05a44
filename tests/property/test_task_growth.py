"""Growth in a row: new features in each record lead to the same, however many of them come in a run."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from core import registry
from tests.property.test_task_cuts import assert_same, outcome, played
from tests.topology.partition import QUICK, Record

BUYS = "ufodt"
"""Buys features: its records are processed one by one (tests/property/acquiring_story.py)."""
LEARNERS = [name for name in registry.names("learners") if name != BUYS]
QUERIES = ["always", "variable_uncertainty", "split_conf_tree", "conf_tree", "rate", "random"]


def growing(seed: int, labelled: float) -> list[Record]:
    """Return records of few models, most of which name features for the first time."""
    draw = random.Random(seed)
    records: list[Record] = []
    for number in range(120):
        key, positive = draw.choice("abc"), draw.random() < 0.5
        features: dict[str, Any] = {"x": draw.gauss(2.0 * positive, 1.0)}
        for _ in range(draw.randrange(3)):
            name = f"f{draw.randrange(number + 1)}"
            features[name] = draw.choice([1, None, "word", draw.random()])
        document: dict[str, Any] = {"features": features, "id": f"i{number}"}
        if draw.random() < labelled:
            document |= {"label": "yes" if positive else "no", "weight": 1}
        if draw.random() < 0.1:  # some of its labels come early
            early = {"id": f"i{number + draw.randrange(3)}", "label": "yes" if positive else "no"}
            records.append(Record("labels", key.encode(), orjson.dumps(early), number))
        records.append(Record("instances", key.encode(), orjson.dumps(document), number))
    return records


@pytest.mark.parametrize("labelled", [0.0, 0.6])
@pytest.mark.parametrize("name", LEARNERS)
def test_features_that_come_in_a_row_change_nothing_before_they_come(name: str, labelled: float) -> None:
    learner: dict[str, Any] = {"name": name}
    if name in ("h_tree", "c_tree", "efdt"):
        learner = {**QUICK, **learner} if name == "h_tree" else {**learner, "grace_period": 20}
    query = QUERIES[LEARNERS.index(name) % len(QUERIES)]
    budget = {"name": "count", "limit": 1.0 if query == "always" else 0.5}
    spec = {"learner": learner, "query": query, "budget": budget, "evaluation": {"window": 20, "every": 9}}
    records = growing(LEARNERS.index(name), labelled)
    together = played(records, set(), spec=spec, pending_keep="all")
    one_by_one = played(records, set(range(len(records))), spec=spec, pending_keep="all")
    assert_same(outcome(together), outcome(one_by_one))
    assert together.task.digest() == one_by_one.task.digest()
