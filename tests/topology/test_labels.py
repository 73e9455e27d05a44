"""Every label has an outcome: learned, late, early, duplicate, unknown, declined, frozen, dead letter."""

from __future__ import annotations

import numpy as np

from tests.topology.partition import ALWAYS, NEVER, Partition, Record, config, instance, label
from topics.codecs import encode_corrections, encode_labels

TTL = 1000


def asked(**settings: object) -> Partition:
    """Return a partition in which the labels of instances a and b were asked for."""
    partition = Partition(config(ALWAYS, pending_ttl_ms=TTL, **settings))
    partition.instances({"features": {"x": 1}, "label": "yes"})
    partition.instances({"features": {"x": 1}, "id": "a"}, {"features": {"x": 2}, "id": "b"})
    assert len(partition.requests) == 2
    return partition


def outcomes(partition: Partition) -> dict[str, int]:
    return {name: n for name, n in partition.counts.items() if name.startswith(("labels.", "early."))}


def test_a_label_is_learned_with_the_features_of_its_pending_instance() -> None:
    partition = asked()
    partition.labels({"id": "a", "label": "no"}, at=TTL)
    assert outcomes(partition) == {"labels.learned": 1}
    summary = partition.model().summary()
    assert (summary.labels, summary.requests) == (2, 2)
    evaluation = partition.model().evaluation()
    assert (evaluation.labels, evaluation.accuracy) == (2, 0.0)  # the answer was "yes", before "no" was known


def test_evaluation_judges_the_prediction_that_was_given() -> None:
    """By the time the label comes the model has changed its mind: what counts is what it had answered."""
    partition = Partition(config(ALWAYS))
    partition.instances(*({"features": {"x": 1}, "label": "yes"} for _ in range(5)))
    judged = partition.model().evaluation().accuracy
    partition.instances({"features": {"x": 1}, "id": "a"})
    partition.instances(*({"features": {"x": 1}, "label": "no"} for _ in range(50)))
    assert partition.predictions[-1]["label"] == "no"
    before = partition.model().evaluation()
    partition.labels({"id": "a", "label": "yes"})
    after = partition.model().evaluation()
    assert after.labels == before.labels + 1
    hits = [round(summary.accuracy * (summary.labels - 1)) for summary in (before, after)]
    assert hits[1] == hits[0] + 1, judged


def test_a_second_label_is_a_duplicate() -> None:
    partition = asked()
    partition.labels({"id": "a", "label": "no"}, {"id": "a", "label": "no"})
    partition.labels({"id": "a", "label": "yes"})
    assert outcomes(partition) == {"labels.learned": 1, "labels.duplicate": 2}
    assert partition.model().summary().labels == 2


def test_a_declined_label_settles_its_instance() -> None:
    partition = asked()
    partition.labels({"id": "a", "declined": True}, {"id": "nobody", "declined": True})
    partition.labels({"id": "a", "label": "no"}, {"id": "a", "declined": True})
    assert outcomes(partition) == {"labels.declined": 2, "labels.duplicate": 2}
    assert partition.model().summary().labels == 1
    assert partition.task.pending.waiting == 1


def test_a_label_after_the_time_to_live_is_late_and_not_learned() -> None:
    partition = asked()
    partition.labels({"id": "a", "label": "no"}, at=TTL + 1)
    assert outcomes(partition) == {"labels.late": 1}
    assert partition.counts["pending.expired"] == 2
    assert partition.model().summary().labels == 1


def test_the_delay_of_a_label_is_the_time_since_its_instance() -> None:
    partition = asked()
    partition.instances({"features": {"x": 1}, "id": "c"}, at=30)
    effects = partition.feed(
        label({"id": "c", "label": "no"}, at=70), label({"id": "a", "label": "no"}, at=90)
    )
    assert sorted(np.concatenate(effects.label_delays).tolist()) == [40, 90]


def test_instances_wait_as_long_as_the_configuration_of_the_worker_that_has_the_task_lets_them() -> None:
    partition = asked()
    partition.task.configure(config(ALWAYS, pending_ttl_ms=2 * TTL))
    partition.labels({"id": "a", "label": "no"}, at=2 * TTL)
    partition.labels({"id": "b", "label": "no"}, at=2 * TTL + 1)
    assert outcomes(partition) == {"labels.learned": 1, "labels.late": 1}


def test_a_label_behind_one_that_came_in_time_is_a_duplicate_however_late_it_is() -> None:
    """Also in one run, and if the first one brings a class that the model does not know yet."""
    partition = asked()
    first = label({"id": "a", "label": "new"}, at=TTL)
    others = [label({"id": "a", "label": "yes"}, at=TTL + 1) for _ in range(20)]
    partition.feed(first, *others)
    assert outcomes(partition) == {"labels.learned": 1, "labels.duplicate": 20}


def test_a_late_label_with_its_features_is_learned_and_judged_by_the_answer_of_then() -> None:
    partition = asked()
    partition.labels({"id": "a", "label": "no", "features": {"x": 1}}, at=TTL + 1)
    partition.labels({"id": "a", "label": "no", "features": {"x": 1}}, at=TTL + 2)
    assert outcomes(partition) == {"labels.late-learned": 1, "labels.duplicate": 1}
    assert partition.model().evaluation().labels == 2


def test_an_id_is_forgotten_after_twice_its_time_to_live() -> None:
    partition = asked()
    partition.labels({"id": "a", "label": "no"}, at=2 * TTL + 1)
    assert outcomes(partition) == {"labels.early": 1}
    assert len(partition.task.pending) == 0


def test_a_label_before_its_instance_waits_for_it_and_is_learned_with_it() -> None:
    partition = Partition(config(ALWAYS))
    partition.labels({"id": "a", "label": "no", "weight": 2}, at=5)
    assert partition.task.early_labels == 1
    partition.instances({"features": {"x": 1}, "id": "a"}, {"features": {"x": 2}, "id": "b"}, at=9)
    assert outcomes(partition) == {"labels.early": 1, "labels.learned": 1, "early.learned": 1}
    assert [request["instance_id"] for request in partition.requests] == ["b"]
    assert partition.task.early_labels == 0
    partition.labels({"id": "a", "label": "no"}, at=10)
    assert outcomes(partition)["labels.duplicate"] == 1


def test_an_early_label_whose_instance_does_not_come_is_unknown() -> None:
    partition = Partition(config(NEVER, pending_ttl_ms=TTL))
    partition.labels({"id": "a", "label": "no"})
    partition.instances({"features": [1], "id": "b"}, at=TTL)
    assert outcomes(partition) == {"labels.early": 1}
    partition.instances({"features": [1], "id": "a"}, at=TTL + 1)
    assert outcomes(partition) == {"labels.early": 1, "labels.unknown": 1}
    assert partition.predictions[-1]["version"] == 0
    assert partition.model().summary().labels == 0


def test_early_labels_have_bounded_room() -> None:
    partition = Partition(config(NEVER, pending_max_bytes=64 * 1024))
    partition.labels(*({"id": f"i{i}", "label": "no"} for i in range(100)))
    held = partition.task.early_labels
    assert 0 < held < 10
    assert outcomes(partition) == {"labels.early": 100, "labels.unknown": 100 - held}
    partition.instances({"features": [1], "id": "i99"}, {"features": [1], "id": "i0"})
    assert partition.counts["instances.labelled"] == 1


def test_a_second_early_label_is_a_duplicate() -> None:
    partition = Partition(config(NEVER))
    partition.labels({"id": "a", "label": "no"}, {"id": "a", "label": "yes"})
    partition.instances({"features": [1], "id": "a"}, {"features": [1]})
    assert outcomes(partition)["labels.duplicate"] == 1
    assert partition.predictions[-1]["label"] == "no"


def test_an_early_label_whose_class_is_not_admitted_is_a_dead_letter_of_its_own() -> None:
    partition = Partition(config(ALWAYS, models_max_classes=2))
    partition.instances({"features": [1], "label": "x"}, {"features": [1], "label": "y"})
    partition.labels({"id": "a", "label": "z"})
    partition.instances({"features": [1], "id": "a"})
    (letter,) = partition.dead_letters
    assert (letter.reason, letter.value) == ("too-many-classes", b'{"id":"a","label":"z"}')
    assert dict(letter.headers)["__streams.errors.topic"] == b"t.labels"
    assert partition.predictions[-1]["id"] == "a"
    assert [request["instance_id"] for request in partition.requests] == ["a"]
    assert outcomes(partition) == {"labels.early": 1, "labels.dead-letter": 1}


def test_an_early_label_of_a_weight_that_a_former_release_took_is_a_dead_letter() -> None:
    """Releases before this one held such labels back; one lies in their snapshots."""
    partition = Partition(config(ALWAYS))
    partition.instances({"features": [1], "label": "x"})
    partition.labels({"id": "a", "label": "x", "weight": 2})
    early = partition.task._state.early
    early.load({name: held._replace(weight=1e20) for name, held in early.image().items()})
    partition.instances({"features": [1], "id": "a"}, {"features": [1], "id": "b"})
    (letter,) = partition.dead_letters
    assert (letter.reason, letter.value) == ("bad-weight", b'{"id":"a","label":"x","weight":2}')
    assert letter.message.startswith("weight=1e+20 must be above 0 and at most 1e+09; scale")
    assert [document["id"] for document in partition.predictions[-2:]] == ["a", "b"]
    assert [request["instance_id"] for request in partition.requests] == ["a", "b"]
    assert outcomes(partition) == {"labels.early": 1, "labels.dead-letter": 1}
    assert partition.model().summary().labels == 1


def test_a_label_with_features_needs_no_pending_instance() -> None:
    partition = Partition(config(NEVER))
    partition.labels({"id": "a", "label": "no", "features": {"x": 1, "colour": "red"}})
    assert outcomes(partition) == {"labels.learned": 1}
    assert partition.model().summary().labels == 1
    assert partition.model().schema.classes == ("no",)
    partition.labels({"id": "a", "label": "no", "features": {"x": 1, "colour": "red"}})
    partition.labels({"id": "b", "label": "no", "features": {"x": 1, "colour": "blue", "new": 3}})
    assert outcomes(partition) == {"labels.learned": 2, "labels.duplicate": 1}
    assert partition.model().schema.names == ("x", "colour")
    assert partition.model().schema.attributes[1].values == ("red", "blue")
    assert partition.counts["features.ignored"] == 1


def test_a_label_with_features_that_do_not_fit_is_a_dead_letter() -> None:
    partition = asked()
    partition.labels(
        {"id": "n", "label": "no", "features": {"x": "one"}}, {"id": "o", "label": "no", "features": [1, 2]}
    )
    assert [letter.reason for letter in partition.dead_letters] == ["wrong-schema", "wrong-schema"]
    assert outcomes(partition) == {"labels.dead-letter": 2}


def test_a_label_of_a_model_that_cannot_come_into_being_is_a_dead_letter() -> None:
    partition = Partition(config(NEVER, models_auto_create=False))
    partition.labels({"id": "a", "label": "no"}, {"id": "b", "label": "no", "features": [1]}, key="nobody")
    assert [letter.reason for letter in partition.dead_letters] == ["unknown-model", "unknown-model"]
    assert "'nobody'" in partition.dead_letters[0].message


def test_a_class_beyond_the_limit_is_a_dead_letter_and_the_instance_goes_on_waiting() -> None:
    partition = asked(models_max_classes=2)
    partition.labels({"id": "a", "label": "no"})
    partition.labels({"id": "b", "label": "perhaps"})
    (letter,) = partition.dead_letters
    assert letter.reason == "too-many-classes"
    assert "max_classes=2" in letter.message
    partition.labels({"id": "b", "label": "no"})
    assert outcomes(partition) == {"labels.learned": 2, "labels.dead-letter": 1}


def test_pending_keep_all_lets_any_label_find_its_instance() -> None:
    some, all_ = (Partition(config(NEVER, pending_keep=keep)) for keep in ("requested", "all"))
    for partition in (some, all_):
        partition.instances({"features": [1], "id": "a"})
        partition.labels({"id": "a", "label": "no"})
    assert outcomes(some) == {"labels.early": 1}
    assert outcomes(all_) == {"labels.learned": 1}
    assert all_.model().evaluation().labels == 1


def test_a_label_in_a_block_counts_row_by_row() -> None:
    partition = asked()
    block = encode_labels(["a", "b", "a"], ["no", None, "no"], format="arrow")[0]
    partition.feed(Record("labels", b"m", block))
    assert outcomes(partition) == {"labels.learned": 1, "labels.declined": 1, "labels.duplicate": 1}


def test_early_labels_of_a_block_become_dead_letters_by_row() -> None:
    partition = Partition(config(NEVER, models_max_classes=1))
    partition.instances({"features": [1], "label": "x"})
    block = encode_labels(["p", "q"], ["x", "y"], format="arrow")[0]
    partition.feed(Record("labels", b"m", block))
    partition.instances({"features": [1], "id": "q"}, {"features": [1], "id": "p"})
    (letter,) = partition.dead_letters
    assert (letter.value, dict(letter.headers)["grove-dlq-rows"]) == (block, b'{"too-many-classes": "1"}')
    assert outcomes(partition)["early.learned"] == 1


def test_the_only_good_label_of_a_block_becomes_a_dead_letter_by_its_row() -> None:
    partition = Partition(config(NEVER, models_max_classes=1))
    partition.instances({"features": [1], "label": "x"})
    block = encode_labels(["p", "q"], ["x", "y"], format="arrow", weights=np.array([-1.0, 1.0]))[0]
    partition.feed(Record("labels", b"m", block))
    partition.instances({"features": [1], "id": "q"})
    rows = [dict(letter.headers)["grove-dlq-rows"] for letter in partition.dead_letters]
    assert rows == [b'{"bad-weight": "0"}', b'{"too-many-classes": "1"}']


def test_weights_of_labels_count() -> None:
    heavy, light = (Partition(config(NEVER)) for _ in range(2))
    for partition, weight in ((heavy, 3.0), (light, 1.0)):
        partition.labels({"id": "a", "label": "x", "features": [1], "weight": weight})
        partition.labels(*({"id": f"b{i}", "label": "y", "features": [1]} for i in range(2)))
        partition.instances({"features": [1]})
    assert [partition.predictions[-1]["label"] for partition in (heavy, light)] == ["x", "y"]


def test_a_frozen_model_answers_and_neither_asks_nor_learns() -> None:
    partition = asked()
    partition.control("freeze")
    before = partition.model().snapshot()
    partition.instances({"features": {"x": 1}, "label": "no"}, {"features": {"x": 1}, "id": "c"})
    partition.labels({"id": "a", "label": "no"})
    partition.labels({"id": "f", "label": "no", "features": {"x": 1}})
    assert partition.model().snapshot() == before
    partition.labels({"id": "b", "declined": True})
    assert partition.model().summary().declined == 1  # what becomes of requests is counted all the same
    assert len(partition.predictions) == 5
    assert len(partition.requests) == 2
    assert partition.counts["instances.frozen"] == 1
    assert outcomes(partition) == {"labels.frozen": 2, "labels.declined": 1}
    partition.control("freeze", frozen=False)
    partition.labels({"id": "a", "label": "no"})
    assert outcomes(partition)["labels.learned"] == 1


def test_many_labels_are_learned_in_one_call_in_their_order() -> None:
    partition, one_by_one = (Partition(config(ALWAYS)) for _ in range(2))
    x = np.random.default_rng(1).uniform(0, 10, 300).round(3).tolist()
    rows = [instance({"features": {"x": v}, "id": f"i{i}"}, key="ab"[i % 2]) for i, v in enumerate(x)]
    labels = [
        label({"id": f"i{i}", "label": "hi" if v > 5 else "lo"}, key="ab"[i % 2]) for i, v in enumerate(x)
    ]
    partition.feed(*rows)
    one_by_one.feed(*rows)
    calls = []
    table = partition.task.models.table
    learn = table.learn
    table.learn = lambda *arguments: calls.append(len(arguments[0])) or learn(*arguments)  # type: ignore
    partition.feed(*labels)
    for one_label in labels:
        one_by_one.feed(one_label)
    assert calls == [300]
    for key in "ab":
        assert partition.model(key).summary().splits >= 1
        assert partition.model(key).snapshot() == one_by_one.model(key).snapshot()


def test_pending_instances_beyond_their_room_are_dropped_and_counted() -> None:
    partition = Partition(config(ALWAYS, pending_max_bytes=16_384))
    partition.instances(*({"features": [1.0], "id": f"i{i}"} for i in range(100)))
    kept = partition.task.pending.waiting
    assert 40 < kept < 50
    assert partition.counts["pending.dropped"] == 100 - kept
    partition.labels({"id": "i0", "label": "x"}, {"id": "i99", "label": "x"})
    assert outcomes(partition) == {"labels.early": 1, "labels.learned": 1}


def test_features_of_the_pending_instance_survive_a_schema_that_grew() -> None:
    partition = Partition(config(ALWAYS))
    partition.instances({"features": {"x": 1.0, "c": "red"}, "id": "a"})
    partition.instances({"features": {"x": 1.0, "c": "blue", "late": 5}, "id": "b"})
    partition.labels({"id": "a", "label": "no"}, {"id": "b", "label": "no"})
    assert partition.model().schema.names == ("x", "c", "late")
    assert partition.model().summary().labels == 2


def test_a_correction_is_a_duplicate_and_its_example_is_learned_once() -> None:
    """A tree keeps what it has learned: a correction adds one example, if it has features."""
    wrong = encode_labels(["a"], ["no"])
    values = encode_corrections(
        ["a", "a (corrected)"], ["yes", "yes"], ["rev"] * 2, [1.0] * 2, [{}, {"x": 1.0}]
    )
    for repeats in (1, 2):  # an application that died while it sent sends again
        partition = asked()
        partition.feed(*(Record("labels", b"m", value) for value in [*wrong, *values * repeats]))
        counts = {"labels.learned": 2, "labels.duplicate": 1 + 2 * (repeats - 1)}
        assert outcomes(partition) == counts
        assert partition.model().summary().labels == 3
        assert not partition.dead_letters
