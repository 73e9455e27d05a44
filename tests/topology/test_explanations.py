"""Predictions that carry their path of rules."""

import pytest
from orjson import dumps

from tests.topology.partition import ALWAYS, Partition, Record, config
from topics.definitions import ROOM_BYTES


def rows(n):
    return [{"id": f"i{i}", "features": {"size": i % 10}, "label": "abc"[(i % 10) // 4]} for i in range(n)]


@pytest.mark.parametrize("cut", [1, 37, 200])
def test_every_prediction_of_a_model_that_explains_has_its_path(cut: int) -> None:
    partition = Partition(config({"explain": True}))
    for first in range(0, 200, cut):
        partition.instances(*rows(200)[first : first + cut])
    paths = [prediction["explanation"] for prediction in partition.predictions]
    assert len(paths) == 200
    assert paths[0] == "all"
    assert all(path.startswith("size ") for path in paths[-10:])
    assert " and size " in "; ".join(paths[-10:])


def test_models_that_explain_and_those_that_do_not_meet_in_a_run() -> None:
    partition = Partition(config())
    partition.control("create", key="talks", spec={"learner": "h-tree", "explain": True})
    both = [
        Record("instances", key, dumps({"id": "1", "features": [1.0], "label": "a"}))
        for key in (b"talks", b"silent")
    ]
    partition.feed(*both)
    talking, silent = partition.predictions
    assert talking["explanation"] == "all"
    assert "explanation" not in silent


def test_it_can_be_configured() -> None:
    partition = Partition(config())
    partition.instances(*rows(3))
    partition.control("configure", spec={"explain": True})
    partition.instances(*rows(5)[3:])
    assert ["explanation" in prediction for prediction in partition.predictions] == [False] * 3 + [True] * 2


@pytest.mark.parametrize("explain", [True, False])
def test_a_request_has_the_path_and_the_shares_of_a_model_that_explains(explain: bool) -> None:
    partition = Partition(config(ALWAYS | {"explain": explain}))
    partition.instances(*rows(100))
    partition.instances(*({"id": f"n{i}", "features": {"size": i % 10}} for i in range(50)))
    answers = {answer["id"]: answer for answer in partition.predictions}
    assert partition.requests
    for request in partition.requests:
        if not explain:
            assert {"explanation", "probabilities", "ranges"}.isdisjoint(request)
            continue
        prediction = answers[request["instance_id"]]
        assert request["explanation"] == prediction["explanation"]
        assert request["probabilities"] == prediction["probabilities"]


@pytest.mark.parametrize("cut", [1, 13, 90])
def test_a_request_has_the_range_of_all_that_its_model_had_answered(cut: int) -> None:
    partition = Partition(
        config({"query": "random", "budget": {"name": "count", "limit": 0.3}, "explain": True})
    )
    sizes = [(7 * i) % 31 - 10 + i / 100 for i in range(90)]
    rows = [{"id": f"i{i}", "features": {"size": size, "colour": "red"}} for i, size in enumerate(sizes)]
    rows[40]["features"] = {"colour": "red"}
    for first in range(0, 90, cut):
        partition.instances(*rows[first : first + cut])
    assert 0 < len(partition.requests) < 90
    for request in partition.requests:
        row = int(request["instance_id"][1:])
        known = [size for i, size in enumerate(sizes[: row + 1]) if i != 40]
        assert request["ranges"] == {"size": [min(known), max(known), len(known)]}


def test_a_request_has_room_for_its_ranges() -> None:
    """Names as long as they may be: what does not fit is left out."""
    partition = Partition(config(ALWAYS | {"explain": True}))
    names = [f"{'n' * 1000}{i}" for i in range(100)]
    partition.instances({"id": "i", "features": dict.fromkeys(names, 1.0)})
    (request,) = partition.requests
    assert 40 < len(request["ranges"]) < 50
    assert len(dumps(request["ranges"])) <= ROOM_BYTES
