"""Records that cannot be processed are dead letters with their reason, and all others go on."""

from __future__ import annotations

from typing import Any

import pytest

from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.task import Task, TaskRun
from tests.topology.partition import ALWAYS, NEVER, NOW, Partition, Record, config

GOOD = b'{"features":{"x":1},"label":"a"}'


@pytest.mark.parametrize(
    ("key", "value", "headers", "reason"),
    [
        (b"m", b"{not json", (), "not-json"),
        (b"m", None, (), "null-value"),
        (None, GOOD, (), "missing-key"),
        (b"\xff\xfe", GOOD, (), "bad-key"),
        (b"m", b'{"features":{"x":[1]}}', (), "wrong-type"),
        (b"m", b'{"label":"a"}', (), "missing-field"),
        (b"m", b'{"features":{"x":1},"weight":-1}', (), "bad-weight"),
        (b"m", b'{"features":{"x":1},"label":"a","weight":1e20}', (), "bad-weight"),
        (b"m", GOOD, [("content-type", b"text/xml")], "unknown-content-type"),
        (b"m", b'{"features":{"x":"one"}}', (), "wrong-schema"),
        (b"m", b'{"features":[1,2,3]}', (), "wrong-schema"),
        (b"m", b'{"features":{"x":1},"label":"c"}', (), "too-many-classes"),
    ],
)
def test_a_bad_record_among_good_ones(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes]], reason: str
) -> None:
    partition = Partition(config(NEVER, models_max_classes=2))
    records = [
        Record("instances", b"m", b'{"features":{"x":1},"label":"%s"}' % name) for name in (b"a", b"b", b"a")
    ]
    records.insert(2, Record("instances", key, value, 7, headers))
    partition.feed(*records)
    (letter,) = partition.dead_letters
    assert (letter.key, letter.value, letter.timestamp, letter.reason) == (key, value, NOW + 7, reason)
    assert letter.headers[: len(headers)] == tuple(headers)
    assert dict(letter.headers)["__streams.errors.offset"] == b"2"
    assert dict(letter.headers)["grove-dlq-attempts"] == b"1"
    assert "__streams.errors.stacktrace" not in dict(letter.headers)
    assert letter.message
    assert [document["id"] for document in partition.predictions] == ["3-0", "3-1", "3-3"]
    assert partition.counts["instances.dead-letter"] == 1
    assert partition.model().summary().labels == 3


def test_a_malformed_record_makes_no_model() -> None:
    partition = Partition(config(NEVER))
    partition.feed(
        Record("instances", b"ghost", b'{"features":{"x":[1]}}'),
        Record("instances", b"m", b'{"features":[1]}'),
    )
    assert len(partition.task.models.keys) == 1
    assert partition.task.models.keys.slot("ghost") == -1


def test_models_beyond_the_limit_are_dead_letters_with_one_alert_until_there_is_room() -> None:
    partition = Partition(config(NEVER, models_max_count=2))
    for key in ("a", "b", "c", "d", "c"):
        partition.instances({"features": [1]}, {"features": [1]}, key=key)
    assert [letter.reason for letter in partition.dead_letters] == ["too-many-models"] * 6
    assert "models.max.count=2" in partition.dead_letters[0].message
    errors = [notice for notice in partition.notices if notice.level == "error"]
    assert [(notice.model, notice.offset) for notice in errors] == [("c", 4)]
    partition.control("delete", key="a")
    partition.instances({"features": [1]}, key="c")
    partition.instances({"features": [1]}, key="d")
    assert len(partition.predictions) == 5
    assert [notice.model for notice in partition.notices if notice.level == "error"] == ["c", "d"]


def test_the_limit_holds_for_all_tasks_of_a_worker() -> None:
    quota = ModelQuota(1)
    one, other = Partition(config(NEVER)), Partition(config(NEVER))
    one.task, other.task = (Task(number, config(NEVER), quota) for number in (0, 1))
    one.instances({"features": [1]}, key="a")
    other.instances({"features": [1]}, key="b")
    assert other.dead_letters[0].reason == "too-many-models"
    one.task.close()
    other.instances({"features": [1]}, key="b")
    assert len(other.predictions) == 1


def test_declared_classes_admit_no_others() -> None:
    partition = Partition(config(NEVER))
    partition.control("create", schema={"attributes": [{"name": "x"}], "classes": ["no", "yes"]})
    partition.instances({"features": {"x": 1}, "label": "maybe"})
    (letter,) = partition.dead_letters
    assert letter.reason == "wrong-schema"
    assert "'maybe'" in letter.message
    assert "no, yes" in letter.message


def test_a_refused_record_teaches_neither_values_nor_classes() -> None:
    partition = Partition(config(NEVER, models_max_classes=1))
    partition.instances({"features": {"x": 1, "c": "red"}, "label": "a"})
    partition.instances(
        {"features": {"x": "bad", "c": "green"}, "label": "a"},
        {"features": {"x": 1, "c": "blue"}, "label": "b"},
        {"features": {"x": 1, "c": "pink"}, "label": "a"},
    )
    assert partition.model().schema.attributes[1].values == ("red", "pink")
    assert partition.model().schema.classes == ("a",)


def test_counts_of_records_add_up() -> None:
    partition = Partition(config(ALWAYS, models_max_classes=2, models_max_count=1))
    values = [
        GOOD,
        b"",
        b'{"features":{"x":2}}',
        b'{"features":{"x":2},"label":"b"}',
        b'{"features":{"x":"q"}}',
    ]
    records = [Record("instances", b"m" if i % 7 else b"other", values[i % 5]) for i in range(1, 71)]
    partition.feed(*records)
    counts = partition.counts
    assert counts["instances.answered"] + counts["instances.dead-letter"] == 70
    assert len(partition.predictions) == counts["instances.answered"]
    assert len(partition.dead_letters) == counts["instances.dead-letter"]


def test_a_timestamp_far_ahead_is_not_believed() -> None:
    partition = Partition(config(ALWAYS, pending_ttl_ms=1000))
    partition.instances({"features": [1], "id": "a"})
    partition.instances({"features": [1]}, at=10**12)
    partition.labels({"id": "a", "label": "x"}, at=500)
    assert partition.counts["labels.learned"] == 1
    assert partition.counts["time.jumps"] == 1
    assert partition.task.clock == NOW + 500


def test_a_first_timestamp_far_ahead_does_not_let_every_label_expire() -> None:
    partition = Partition(config(ALWAYS, pending_ttl_ms=1000))
    partition.instances({"features": [1], "id": "wrong"}, at=10**12)
    partition.instances({"features": [1], "id": "a"}, {"features": [1], "id": "b"})
    partition.labels({"id": "wrong", "label": "x"}, {"id": "a", "label": "x"}, at=900)
    partition.labels({"id": "b", "label": "x"}, at=1100)
    assert partition.task.clock == NOW + 1100
    assert partition.counts["labels.learned"] == 2, (
        "the one that came first waits from the corrected clock on"
    )
    assert partition.counts["labels.late"] == 1
    assert partition.counts["time.jumps"] == 1


def test_an_empty_run_changes_only_the_position() -> None:
    partition = Partition(config(NEVER))
    raw = partition._raw("instances", [])
    effects = partition.task.process(TaskRun("instances", raw, position=17))
    assert partition.task.next == {"instances": 17}
    assert (effects.counts, effects.answers) == ({}, [])


BOCT = {"learner": "boct", "query": "always", "budget": {"limit": 1.0}}


def test_a_label_outside_two_classes_is_a_dead_letter_of_boct() -> None:
    """With an instance, and on its own; before and behind it all is learned."""
    partition = Partition(config(BOCT))
    partition.instances(
        *({"id": f"{i}", "features": {"x": i}, "label": name} for i, name in enumerate("pqrpq")),
        {"id": "late", "features": {"x": 9}},
    )
    partition.labels({"id": "late", "label": "s"})
    partition.labels({"id": "late", "label": "q"})
    assert [letter.reason for letter in partition.dead_letters] == ["too-many-classes"] * 2
    assert [letter.json["label"] for letter in partition.dead_letters] == ["r", "s"]
    assert all("2" in letter.message for letter in partition.dead_letters)
    assert partition.model().summary().labels == 5


def test_what_is_missing_constant_or_twice_there_is_learned_by_boct() -> None:
    """Features that are null, left out, always the same; the same record again under another id."""
    partition = Partition(config(BOCT))
    documents = [
        {"id": f"{i}", "features": {"x": i % 7, "same": 1, "gone": None}, "label": "pq"[i % 2]}
        for i in range(40)
    ]
    documents += [{"id": f"again-{i}", "features": {"x": 3, "same": 1}, "label": "p"} for i in range(10)]
    partition.instances(*documents)
    assert partition.dead_letters == []
    summary = partition.model().summary()
    assert (summary.records, summary.labels) == (50, 50)


@pytest.mark.parametrize(
    ("learner", "says"),
    [
        ({"name": "boct", "delta": 0.5}, "delta=0.5 must be below 0.5 with bound 'credible'"),
        ({"name": "boct", "delta": 1e-30}, "delta=1e-30 must be at least 1e-25"),
        ({"name": "boct", "sizes": "volume"}, "sizes='volume' must be one of 'stream', 'pool'"),
    ],
)
def test_a_boct_that_means_nothing_is_a_command_refused(learner: dict[str, object], says: str) -> None:
    partition = Partition(config(NEVER))
    partition.control("create", spec={"learner": learner, "query": "boct_al"})
    (letter,) = partition.dead_letters
    assert letter.reason == "bad-control"
    assert says in letter.message


def test_a_weight_is_refused_by_a_learner_that_counts_records() -> None:
    """Of instances, of labels and of labels that were early; what is not weighed is learned."""
    partition = Partition(config(BOCT))
    partition.instances(
        {"id": "a", "features": {"x": 1}, "label": "p"},
        {"id": "b", "features": {"x": 2}, "label": "q", "weight": 2},
        {"id": "c", "features": {"x": 3}, "weight": 1},
    )
    partition.labels({"id": "c", "label": "q", "weight": 0.5})
    partition.labels({"id": "d", "label": "q", "weight": 3})
    partition.instances({"id": "d", "features": {"x": 4}})
    partition.labels({"id": "c", "label": "q"})
    reasons = [(letter.reason, letter.message.partition(";")[0]) for letter in partition.dead_letters]
    rule = "must be 1 with 'boct', which counts records"
    assert reasons == [("bad-weight", f"weight={weight} {rule}") for weight in ("2.0", "0.5", "3.0")]
    model = partition.model().summary()
    assert (model.records, model.labels) == (3, 2)


def test_bad_records_among_good_ones_leave_a_forest_what_it_is() -> None:
    """UFFT: a class too many plants no tree, a weight that is none is not learned; weights are."""
    spec = NEVER | {"learner": {"name": "ufft"}}
    good = [
        {"features": {"x": i % 7, "same": 1}, "label": "ab"[i % 7 > 3], "weight": 1 + i % 3}
        for i in range(300)
    ]
    bad: list[dict[str, Any]] = [
        {"features": {"x": 1, "same": 1}, "label": "c"},
        {"features": {"x": 1, "same": 1}, "label": "a", "weight": -1},
        {"features": {"x": 1, "same": 1}, "label": "a", "weight": 0},
        {"features": {"x": "much", "same": 1}, "label": "a"},
    ]
    clean, mixed = (Partition(config(spec, models_max_classes=2)) for _ in range(2))
    clean.instances(*good)
    mixed.instances(*good[:150], *bad, *good[150:])
    reasons = [letter.reason for letter in mixed.dead_letters]
    assert reasons == ["too-many-classes", "bad-weight", "bad-weight", "wrong-schema"]
    assert len(mixed.predictions) == len(clean.predictions) == 300
    assert mixed.model().snapshot() == clean.model().snapshot()
    assert mixed.model().summary().labels == 300
    mixed.instances({"features": {"x": 6, "same": 1}}, {"features": {"x": 0, "same": 1}})
    assert [document["label"] for document in mixed.predictions[-2:]] == ["b", "a"]


def test_a_forest_of_one_class_predicts_it() -> None:
    partition = Partition(config(NEVER | {"learner": {"name": "ufft"}}))
    partition.instances(*({"features": {"x": 1}, "label": "a"} for _ in range(3)), {"features": {"x": 2}})
    assert partition.predictions[-1]["label"] == "a"
    assert partition.predictions[-1]["probabilities"] == {"a": 1.0}
