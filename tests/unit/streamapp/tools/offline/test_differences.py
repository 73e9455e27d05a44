"""What two models differ in."""

from __future__ import annotations

from typing import Any

from core.model.model import Model
from streamapp.tools.offline.model_differences import differences
from tests.topology.partition import ALWAYS, Partition, config


def model(n: int, limit: int = 5, **spec: Any) -> Model:
    partition = Partition(config(ALWAYS | spec))
    for number in range(n):
        label = "high" if number % 10 > limit else "low"
        partition.instances({"features": {"x": number % 10, "y": number % 3}, "label": label})
    found: Model = partition.model()
    return found


def test_the_same_model_twice() -> None:
    assert differences(model(100), model(100)) == []


def test_the_first_node_whose_test_is_another_one() -> None:
    one, other = model(200), model(200, limit=2)
    assert one.summary().splits > 0
    found = differences(one, other)
    (tree,) = [each for each in found if each.part == "tree"]
    assert tree.name == "root"
    assert tree.first.startswith("x <= ")
    assert str(tree).startswith("tree    root: x <= ")
    below = next(each for each in differences(one, model(5)) if each.part == "tree")
    assert (below.first.split(" ")[0], below.second) == ("x", "leaf")


def test_spec_schema_and_counts_by_name() -> None:
    other = model(20, seed=7, drift="ddm")
    found = {(each.part, each.name): (each.first, each.second) for each in differences(model(21), other)}
    assert found["spec", "seed"] == (1, 7)
    assert found["spec", "drift.name"] == ("none", "ddm")
    assert found["counts", "labels"] == (21, 20)
    fewer = {each.name: each.second for each in differences(model(21), model(3)) if each.part == "schema"}
    assert fewer == {"classes": ["low"]}
    order = ["spec", "schema", "counts", "tree"]
    assert [part for part, _ in found] == sorted((part for part, _ in found), key=order.index)
