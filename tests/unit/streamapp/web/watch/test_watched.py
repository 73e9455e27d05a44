"""What is watched: models, curves and events, bounded, from records in any order of topics."""

from __future__ import annotations

import dataclasses
import itertools
import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from streamapp.errors import StreamappError
from streamapp.web.charts.event_timeline import event_timeline
from streamapp.web.formatting import event_in_words
from streamapp.web.tree.outline_rows import split_in_words
from streamapp.web.watch.model_words import accuracy_in_words
from streamapp.web.watch.watch_reader import evaluations_of
from streamapp.web.watch.watched import EVENTS_MAX, POINTS_MAX, Evaluated, Said, Watched
from topics.codecs import encode_evaluations
from topics.columns.records import EvaluationRecord, ModelEvent


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched(":memory:")
    made.begin({"prefix": "t."})
    yield made
    made.close()


def evaluated(key: str, labels: int, accuracy: float = 0.5, at: int | None = None) -> Evaluated:
    nan = math.nan
    record = EvaluationRecord(2 * labels, labels, accuracy, 0.5, nan, nan, nan, nan, 0.5, version=labels)
    return Evaluated(key, 1, labels if at is None else at, record)


def said(key: str, kind: Any, offset: int, at: int = 0, **detail: Any) -> Said:
    return Said(key, 1, ModelEvent(kind, "t.instances", offset, at, offset, offset, None, detail))


def split(key: str, node: int, offset: int, **more: Any) -> Said:
    return said(key, "split", offset, node=node, attribute="x", test="numeric", threshold=1.5, **more)


def test_a_model_is_what_the_topics_told_of_it(watched: Watched) -> None:
    made = said("<b>", "created", 0, learner="h-tree")
    watched.apply([evaluated("<b>", 10, 0.25)], [made, split("<b>", 0, 7)], {("t.e", 1): 5})
    (row,), total = watched.models("", "key", descending=False, first=0, count=10)
    assert total == 1
    assert (row.key, row.learner, row.partition, row.records, row.labels) == ("<b>", "h-tree", 1, 20, 10)
    assert (row.accuracy, row.splits, row.drifts, row.state) == (0.25, 1, 0, "")
    assert watched.splits("<b>").keys() == {0}
    assert [each["event"] for each in watched.events("<b>")] == ["split", "created"]
    assert watched.positions("t.e") == {1: 5}
    evaluation = watched.evaluation("<b>")
    assert evaluation is not None
    assert evaluation["kappa"] is None


def test_events_tell_how_far_a_model_is_until_its_first_evaluation(watched: Watched) -> None:
    watched.apply([], [said("k", "created", 0), split("k", 0, 90)], {})
    model = watched.model("k")
    assert model is not None
    assert (model.records, model.labels, model.accuracy) == (90, 90, None)


def test_the_accuracy_over_all_records_has_its_interval_or_a_reason(watched: Watched) -> None:
    def words() -> str:
        model = watched.model("k")
        assert model is not None
        return accuracy_in_words(model)

    watched.apply([], [said("k", "created", 0)], {})
    assert words() == "none yet: the model has no label"
    watched.apply([], [split("k", 0, 725)], {})
    assert words().startswith("none yet at 725 labels: the first evaluation comes at evaluation.every")
    biased = evaluated("k", 1000, 0.7)
    watched.apply([biased], [], {})
    assert words().startswith("70.0 % on requested labels alone")
    unbiased: dict[str, Any] = {
        "accuracy_unbiased": 0.9,
        "accuracy_unbiased_low": 0.875,
        "accuracy_unbiased_high": 0.921,
    }
    drawn = dataclasses.replace(biased.evaluation, **unbiased)
    watched.apply([dataclasses.replace(biased, evaluation=drawn)], [], {})
    assert words() == "90.0 % (87.5 to 92.1)"
    watched.apply([evaluated("worse", 10, 0.8)], [], {})
    rows, _ = watched.models("", "accuracy", descending=False, first=0, count=2)
    assert [row.key for row in rows] == ["worse", "k"], "the order is that of the shown figures"
    watched.apply([], [said("k", "reset", 1001, at=2000)], {})
    assert words().startswith("none yet")


def test_what_comes_twice_is_there_once(watched: Watched) -> None:
    for _ in range(2):
        watched.apply([], [said("k", "created", 0), split("k", 0, 3), split("k", 1, 3)], {})
    model = watched.model("k")
    assert model is not None
    assert model.splits == 2
    assert len(watched.events("k")) == 3


def test_a_curve_stays_within_its_bound_and_keeps_first_and_newest(watched: Watched) -> None:
    n = 5 * POINTS_MAX
    watched.apply([evaluated("k", labels) for labels in range(1, n + 1)], [], {})
    labels = [point["labels"] for point in watched.curve("k")]
    assert POINTS_MAX // 4 < len(labels) <= POINTS_MAX + 1
    assert labels == sorted(labels)
    assert labels[-1] == n
    steps = {b - a for a, b in itertools.pairwise(labels[:-1])}
    assert max(steps) <= 2 * min(steps), "evenly"


def test_events_stay_within_their_bound_and_the_newest_are_kept(watched: Watched) -> None:
    n = 3 * EVENTS_MAX
    watched.apply([], [split("k", at % 7, at) for at in range(n)], {})
    found = watched.events("k", count=10 * n)
    assert EVENTS_MAX <= len(found) <= EVENTS_MAX + EVENTS_MAX // 4
    assert found[0]["offset"] == n - 1
    assert watched.events("k", ("drift",)) == []
    assert [each["offset"] for each in watched.events("k", first=1, count=2)] == [n - 2, n - 3]


def test_a_reset_begins_anew_even_if_older_evaluations_are_read_after_it(watched: Watched) -> None:
    watched.apply([evaluated("k", 50, at=100)], [split("k", 0, 1, at=90)], {})
    watched.apply([], [said("k", "reset", 2, at=200, learner="efdt")], {})
    watched.apply([evaluated("k", 60, at=150), evaluated("k", 5, at=250)], [], {})
    model = watched.model("k")
    assert model is not None
    assert (model.labels, model.splits, model.learner) == (5, 0, "efdt")
    assert [point["labels"] for point in watched.curve("k")] == [5]
    assert watched.splits("k") == {}


def test_nodes_that_a_revision_or_a_drift_took_are_forgotten(watched: Watched) -> None:
    watched.apply([], [split("k", node, node) for node in range(5)], {})
    watched.apply([], [said("k", "pruned", 10, node=2)], {})
    assert watched.splits("k").keys() == {0, 1}
    watched.apply([], [said("k", "revised", 11, node=0, action="moved", attribute="x", test="numeric")], {})
    assert watched.splits("k").keys() == {0, 1}
    watched.apply([], [said("k", "revised", 12, node=1, action="replaced")], {})
    assert watched.splits("k").keys() == {0, 1}
    watched.apply([], [said("k", "drift", 13, level="drift", action="background tree took over")], {})
    assert watched.splits("k") == {}
    model = watched.model("k")
    assert model is not None
    assert model.drifts == 1


def test_an_alarm_of_inputs_counts_as_a_drift_alarm_and_keeps_the_tree(watched: Watched) -> None:
    watched.apply([], [said("k", "created", 1, learner="h-tree"), split("k", 0, 2)], {})
    watched.apply([], [said("k", "drift", 3, at=70, level="input", detector="input", action="none")], {})
    watched.apply([], [said("k", "drift", 4, at=90, level="warning", detector="ddm")], {})
    model = watched.model("k")
    assert model is not None
    assert (model.drifts, model.drift_ms) == (1, 70)
    assert watched.splits("k").keys() == {0}


def test_a_tree_whose_nodes_get_other_numbers_without_an_event_has_no_splits_to_draw(
    watched: Watched,
) -> None:
    watched.apply([], [said("k", "created", 1, learner="hat"), split("k", 0, 2), split("k", 1, 3)], {})
    assert watched.splits("k") == {}
    model = watched.model("k")
    assert model is not None
    assert model.splits == 2


def test_ten_thousand_models_are_shown_a_page_at_a_time(watched: Watched) -> None:
    names = [f"user-{n:05d}" for n in range(10_000)]
    watched.apply([evaluated(key, at + 1) for at, key in enumerate(names)], [], {})
    rows, total = watched.models("", "labels", descending=True, first=25, count=25)
    assert total == 10_000
    assert [row.key for row in rows] == names[::-1][25:50]
    rows, total = watched.models("USER-0999", "key", descending=False, first=0, count=25)
    assert (total, rows[0].key) == (10, "user-09990")
    assert watched.models("%", "key", descending=False, first=0, count=5) == ([], 0)
    assert watched.models("", "key; DROP TABLE model", descending=False, first=0, count=1)[1] == 10_000


def test_a_file_of_other_topics_or_that_is_none_is_filled_anew(tmp_path: Path) -> None:
    path = tmp_path / "watched.sqlite"
    path.write_bytes(b"this is no database, however long it may be" * 100)
    first = Watched(path)
    assert not first.begin({"cluster": "a"})
    first.apply([evaluated("k", 1)], [], {("t", 0): 9})
    first.close()
    second = Watched(path)
    assert not second.begin({"cluster": "a"})
    assert second.positions("t") == {0: 9}
    assert second.begin({"cluster": "b"})
    assert second.positions("t") == {}
    assert second.model("k") is None
    second.close()


def test_states_follow_controls(watched: Watched) -> None:
    states = []
    for offset, kind in enumerate(("created", "frozen", "unfrozen", "deleted", "created")):
        watched.apply([], [said("k", kind, offset)], {})
        model = watched.model("k")
        assert model is not None
        states.append(model.state)
    assert states == ["", "frozen", "", "deleted", ""]


ODD: tuple[Any, ...] = (None, True, -1, 2**63, 1.5, math.nan, "x", "", [], [[1]], {}, {"a": [1]})
MEMBERS: tuple[str, ...] = ("node", "attribute", "test", "threshold", "category", "former", "action", "level")
MEMBERS += (
    "detector",
    "error_rate",
    "leaves",
    "gap",
    "bound",
    "labels",
    "reason",
    "learner",
    "query",
    "pair",
)
MEMBERS += ("member", "challenge", "challenger", "by")


def test_odd_members_of_events_are_taken_in_and_drawn(watched: Watched) -> None:
    kinds: tuple[str, ...] = (
        "created",
        "split",
        "revised",
        "pruned",
        "drift",
        "growth-stopped",
        "frozen",
        "deleted",
        "new",
    )
    kinds += ("challenged", "decided", "promoted", "dropped", "undecided")
    members: dict[str, Any] = {"test": "numeric", "former": {"test": "category"}, "level": "drift"}
    events = [
        said(
            "k",
            kind,
            n,
            **members | {member: odd},
        )
        for n, (kind, member, odd) in enumerate(itertools.product(kinds, MEMBERS, ODD))
    ]
    for event in events:
        watched.apply([], [event], {})
        (known,) = watched.events("k", count=1)
        assert event_in_words(known)
        event_timeline([known])
        for split_event in watched.splits("k").values():
            split_in_words(split_event)


CURVE = {"labels": [[0, 32]], "accuracy": [[0.5, 0.4, 0.6]]}


def read(**members: Any) -> list[Evaluated]:
    """Return what is taken in of an evaluation with these members."""
    record = dataclasses.replace(evaluated("k", 10).evaluation, **members)
    (body,) = encode_evaluations([record])
    message = Message(topic="t.evaluations", partition=0, offset=0, key=b"k", value=body, timestamp=(1, 5))
    return evaluations_of([message])


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"advice": "stop"},
        {"learning_curve": CURVE},
        {"challenge": {"labels": 3}},
        {"measured": "records"},
    ],
)
def test_an_evaluation_is_taken_in_with_and_without_its_optional_members(members: dict[str, Any]) -> None:
    (taken,) = read(**members)
    assert {name: getattr(taken.evaluation, name) for name in members} == members


@pytest.mark.parametrize(
    "members",
    [
        {"advice": 7},
        {"learning_curve": [1]},
        {"learning_curve": {"labels": [[0, 32]], "accuracy": []}},
        {"learning_curve": CURVE | {"labels": [[0]]}},
        {"learning_curve": CURVE | {"accuracy": [[0.5, "x", 0.6]]}},
        {"gain_forecast": "much"},
    ],
)
def test_an_evaluation_with_a_curve_that_cannot_be_drawn_is_left_out(members: dict[str, Any]) -> None:
    assert read(**members) == []


def test_a_file_that_is_damaged_while_it_is_used_is_made_again_by_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "watched.sqlite"
    first = Watched(path)
    first.begin({"cluster": "a"})
    first.apply([evaluated(f"k{number}", 1) for number in range(500)], [], {("t", 0): 9})
    first.close()
    size, page = path.stat().st_size, 4096
    with path.open("r+b") as file:  # the first pages, with the schema, stay
        file.seek(3 * page)
        file.write(b"\xff" * (size - 3 * page))
    second = Watched(path)
    with pytest.raises(sqlite3.DatabaseError, match="malformed"):
        second.apply([evaluated(f"k{number}", 2) for number in range(500)], [], {("t", 0): 19})
    second.close()
    assert f"{path} is damaged; it is deleted, and filled again from the topics" in caplog.text
    third = Watched(path)
    assert third.positions("t") == {}
    third.close()


def test_a_lack_of_rights_is_no_reason_to_lose_the_file(tmp_path: Path) -> None:
    path = tmp_path / "watched.sqlite"
    first = Watched(path)
    first.apply([], [], {("t", 0): 9})
    first.close()
    (tmp_path / "watched.sqlite-wal").mkdir()  # so that the file cannot be opened
    with pytest.raises(StreamappError, match="make room there, or name another file"):
        Watched(path)
    (tmp_path / "watched.sqlite-wal").rmdir()
    second = Watched(path)
    assert second.positions("t") == {0: 9}
    second.close()
