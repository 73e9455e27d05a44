"""Model answers: the nodes of a tree as a page draws them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.errors import GroveError
from core.export import outline
from streamapp.errors import UsageError
from streamapp.tools.inspection import model_answers
from streamapp.tools.inspection.model_answers import ModelAnswers, drawn, node_rows
from streamapp.web.tree.outline_rows import OutlineRows
from streamapp.worker.task.models.files.exported import ExportedModel
from tests.topology.partition import ALWAYS, NEVER, QUICK, Partition, config
from topics.codecs.limits import Limits
from topics.columns.records import RawRecords


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


class PlayedPartition:
    """The log of instances of a partition, by offset."""

    def __init__(self, records: dict[int, tuple[bytes, bytes]]) -> None:
        self._records = records

    def __enter__(self) -> PlayedPartition:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def instance(self, offset: int) -> RawRecords | None:
        if offset not in self._records:
            return None
        key, value = self._records[offset]
        return RawRecords("t.instances", 0, [offset], [0], [key], [value], [()])


class PlayedPlace:
    """An installation with one partition."""

    def __init__(self, records: dict[int, tuple[bytes, bytes]]) -> None:
        self._records = records
        self.config = config(limits=Limits(class_max_bytes=600))

    def partition(self, number: int) -> PlayedPartition:
        assert number == 0
        return PlayedPartition(self._records)


@pytest.fixture
def answers(partition: Partition) -> ModelAnswers:
    """Answers about the partition's model, which was drawn before."""
    records = {
        5: (b"k", b'{"features": {"x": 1.5, "y": 9.0, "new": 3}}'),
        6: (b"other", b'{"features": {"x": 1.5}}'),
        7: (b"k", b"{broken"),
        8: (b"k", b'{"features": {"x": 1.5, "y": null}}'),
        10: (b"k", b'{"features": {"x": 1.5}, "label": "%s"}' % (b"l" * 500)),
    }
    made = ModelAnswers(PlayedPlace(records))  # type: ignore[arg-type]
    made._drawn = "k", ExportedModel("k", partition.model(), 2, True, False, {"positions": {}})
    return made


def test_the_path_of_a_record_is_one_in_the_drawn_tree(answers: ModelAnswers, partition: Partition) -> None:
    tree = OutlineRows(node_rows(drawn(partition.model())))
    for record in ({"x": 1.5, "y": 9.0}, {"x": 9.9, "y": 0.1}, {"x": None, "y": 5.0}, {}):
        answer = answers.path("k", features=record)
        path = tree.path(answer["conditions"])
        assert path is not None
        assert not tree.by_number[path[-1]]["children"]
        assert answer["label"] == partition.model().predict(record).label
    by_place, typed = answers.path("k", at="0:5"), answers.path("k", features={"x": 1.5, "y": 9.0, "new": 3})
    assert by_place == typed
    assert any("(missing)" in text for text in answers.path("k", at="0:8")["conditions"])


def test_a_record_within_the_limits_of_the_workers_has_a_path(answers: ModelAnswers) -> None:
    assert answers.path("k", at="0:10") == answers.path("k", features={"x": 1.5})


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ({"at": "0:9"}, "must be a record of instances: there is none at this offset"),
        ({"at": "0:6"}, "must be of the model 'k'; it is of the model 'other'"),
        ({"at": "0:7"}, "record='0:7' must be an instance: "),
        ({"at": "first"}, "must be PARTITION:OFFSET"),
        ({"features": {"x": [1]}}, r"x=\[1\] must be a number, a text or null"),
        ({"features": {"x": "red"}}, "x='red' must be a number; the model learned it as one"),
    ],
)
def test_a_record_without_a_path_is_named_with_the_rule(
    answers: ModelAnswers, record: dict[str, Any], error: str
) -> None:
    with pytest.raises((UsageError, GroveError), match=error):
        answers.path("k", **record)


def test_a_tree_with_many_classes_is_drawn_with_fewer_nodes(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_answers, "WEIGHTS_MAX", 8)
    assert 1 <= len(drawn(partition.model())) <= 4, "two classes"


@pytest.mark.parametrize("conformal", [{}, {"conformal": {"alpha": 0.1}}])
def test_measures_name_the_coverage_of_sets_where_a_model_has_them(conformal: dict[str, Any]) -> None:
    here = Partition(config(ALWAYS | {"learner": QUICK} | conformal))
    for start in range(0, 200, 20):
        rows = ({"features": {"x": x}, "label": "hi" if x > 9 else "lo"} for x in range(start % 20, 20))
        here.instances(*rows)
    lines = "\n".join(model_answers.measure_lines(model_answers.measured(here.model())))
    assert "log-loss" in lines
    assert ("coverage of the sets" in lines, "classes in a set" in lines) == (bool(conformal),) * 2
