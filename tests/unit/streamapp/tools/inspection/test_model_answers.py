"""Model answers: the nodes of a tree as a page draws them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.export import outline
from streamapp.tools.inspection import model_answers
from streamapp.tools.inspection.model_answers import drawn, node_rows
from tests.topology.partition import NEVER, QUICK, Partition, config


@pytest.fixture(scope="module")
def partition() -> Partition:
    made = Partition(config(NEVER | {"learner": QUICK}))
    values = np.random.default_rng(5).uniform(0, 10, (900, 2)).round(1).tolist()
    for start in range(0, 900, 300):
        made.instances(
            *(
                {"features": {"x": x, "y": y}, "label": "hi" if x + y > 10 else "lo"}
                for x, y in values[start : start + 300]
            )
        )
        made.instances(*({"features": {"x": x}} for x, _ in values[start : start + 40]))  # some are missing
    return made


def rows_of(partition: Partition) -> dict[int, dict[str, Any]]:
    return {row["node"]: row for row in node_rows(outline(partition.model()))}


def test_numbers_add_up_from_the_leaves_to_the_root(partition: Partition) -> None:
    rows = rows_of(partition)
    assert len(rows) > 6
    assert rows[0]["records"] == partition.model().summary().records
    for row in rows.values():
        children = [rows[child] for child in row["children"]]
        if children:
            assert row["own"] >= 0
            assert row["own"] + sum(child["records"] for child in children) == pytest.approx(row["records"])
            summed = np.sum([child["masses"] for child in children], axis=0)
            assert row["masses"] == pytest.approx(summed.tolist())
            assert row["masses"][row["majority"]] == max(row["masses"]), "what purity is of"
        else:
            assert row["own"] == row["records"]
        assert row["purity"] is None or 0.5 <= row["purity"] <= 1.0


def test_the_attributes_with_most_importance_come_first(partition: Partition) -> None:
    important = model_answers.most_important(partition.model())
    shares = [share for _, share in important]
    assert {name for name, _ in important} == {"x", "y"}
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0)


def test_inner_nodes_say_their_test(partition: Partition) -> None:
    rows = rows_of(partition)
    events = [message.json for message in partition.sent["model-events"] if message.json["event"] == "split"]
    tests = {event["detail"]["node"]: event["detail"] for event in events}
    for number, row in rows.items():
        assert (row["test"] is None) == (not row["children"])
        if row["children"]:
            assert row["attribute"] == tests[number]["attribute"]
            assert row["value"] == tests[number]["threshold"]


def test_a_tree_that_is_too_large_is_cut_where_enough_is_left(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = partition.model()
    whole = len(outline(model))
    assert len(drawn(model)) == whole
    monkeypatch.setattr(model_answers, "NODES_MAX", 4)
    cut = drawn(model)
    assert 1 <= len(cut) <= 4
    assert any(node.leaves_below for node in cut)
