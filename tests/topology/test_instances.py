"""Instances in, predictions and label requests out: JSON to JSON, packed to packed, blocks to blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.model import validate
from core.model.model import Model
from core.schema.schema import Schema
from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.task.models.schema_growth import SchemaGrowth
from tests.topology.partition import ALWAYS, NAMES, NEVER, NOW, Partition, Record, config, instance
from topics.codecs import decode_predictions, encode_instances
from topics.columns.records import Features
from topics.definitions import TopicNames

FORESTS = ("arf", "leveraging-bagging", "ozaboost", "srp")


def answer(partition: Partition, number: int = -1) -> tuple[object, ...]:
    document = partition.predictions[number]
    return document["id"], document["label"], document["probabilities"], document["version"]


def test_a_labelled_instance_is_answered_before_it_is_learned() -> None:
    partition = Partition(config(NEVER))
    partition.instances(
        {"features": {"x": 1.5}, "label": "spam", "id": "first"},
        {"features": {"x": 1.5}, "label": "ham"},
        {"features": {"x": 1.5}},
    )
    assert answer(partition, 0) == ("first", None, {}, 0)
    assert answer(partition, 1) == ("3-1", "spam", {"spam": 1.0}, 1)
    assert answer(partition, 2)[3] == 2
    assert set(answer(partition, 2)[2]) == {"spam", "ham"}  # type: ignore[call-overload]
    assert partition.counts == {"models.created": 1, "instances.answered": 3, "instances.labelled": 2}


def test_the_model_learns_what_it_is_shown() -> None:
    partition = Partition(config(NEVER))
    draw = np.random.default_rng(3)
    rows = [
        {"features": {"x": v, "y": 1}, "label": "hi" if v > 5 else "lo"}
        for v in draw.uniform(0, 10, 400).tolist()
    ]
    partition.instances(*rows)
    partition.instances({"features": {"x": 9.5, "y": 1}}, {"features": {"x": 0.5, "y": 1}})
    assert [document["label"] for document in partition.predictions[-2:]] == ["hi", "lo"]
    assert partition.counts["models.splits"] >= 1


def test_answers_have_key_and_timestamp_of_their_instance() -> None:
    partition = Partition()
    partition.feed(
        instance({"features": [1]}, key="a", at=5),
        instance({"features": [1]}, key="b", at=7),
        instance({"features": [1, 2]}, key="c", at=6),
    )
    sent = [(message.key, message.timestamp, message.headers) for message in partition.sent["predictions"]]
    assert sent == [(b"a", NOW + 5, ()), (b"b", NOW + 7, ()), (b"c", NOW + 6, ())]


def test_each_model_key_has_its_own_model() -> None:
    partition = Partition(config(NEVER))
    rows = [instance({"features": [1.0], "label": name}, key=key) for key, name in ("ax", "by", "ax", "by")]
    partition.feed(*rows)
    partition.feed(instance({"features": [1.0]}, key="a"), instance({"features": [1.0]}, key="b"))
    assert [document["label"] for document in partition.predictions[-2:]] == ["x", "y"]
    assert partition.task.models.keys.slots(["a", "b", "nobody"]).tolist() == [0, 1, -1]


def test_features_are_found_by_name_whatever_their_order() -> None:
    one, other = Partition(config(NEVER)), Partition(config(NEVER))
    draw = np.random.default_rng(5)
    for partition in (one, other):
        partition.instances({"features": {"x": 1, "y": 1}, "label": "lo"})
    for x, y in draw.uniform(0, 10, (120, 2)).tolist():
        label = "hi" if x > 5 else "lo"
        one.instances({"features": {"x": x, "y": y}, "label": label})
        other.instances(
            {"features": {"y": y, "x": x} if x > 3 and y < 9 else {"x": x, "y": y}, "label": label}
        )
    assert one.model().snapshot() == other.model().snapshot()
    assert one.predictions == other.predictions


def test_strings_are_nominal_values_and_numbers_among_them_too() -> None:
    partition = Partition(config(NEVER))
    colours = ["red", "blue", 3, 2.5, "red", "3"]
    partition.instances(*({"features": {"colour": colour}, "label": "a"} for colour in colours))
    (attribute,) = partition.model().schema.attributes
    assert (attribute.kind, attribute.values) == ("nominal", ("red", "blue", "3", "2.5"))
    assert partition.dead_letters == []


def test_a_first_record_with_null_leaves_the_kind_of_that_feature_open() -> None:
    partition = Partition(config(NEVER))
    partition.instances(
        {"features": {"x": 1, "colour": None}, "label": "a"}, {"features": {"x": 1, "colour": "red"}}
    )
    assert [(a.name, a.kind) for a in partition.model().schema.attributes] == [
        ("x", "numeric"),
        ("colour", "nominal"),
    ]


def split(partition: Partition) -> None:
    """Show the model 200 records that it splits on."""
    values = np.random.default_rng(1).uniform(0, 10, 200).tolist()
    partition.instances(*({"features": {"x": v}, "label": "hi" if v > 5 else "lo"} for v in values))
    assert partition.model().summary().splits >= 1


def test_new_features_join_until_the_first_split_and_are_ignored_and_warned_of_once_after_it() -> None:
    partition = Partition(config(NEVER))
    partition.instances({"features": {"x": 1.0}, "label": "lo"})
    partition.instances({"features": {"x": 1.0, "early": 2.0}, "label": "lo"})
    split(partition)
    partition.instances(
        {"features": {"x": 1.0, "late": 2.0, "later": "q"}}, {"features": {"late": 2.0, "x": 1.0}}
    )
    partition.instances({"features": {"x": 1.0, "late": None}})
    assert partition.model().schema.names == ("x", "early")
    assert partition.counts["features.ignored"] == 3
    (warning,) = [notice for notice in partition.notices if notice.level == "warning"]
    assert "'late'" in warning.text
    assert (warning.model, warning.offset) == ("m", 202)


def test_a_feature_that_comes_right_before_the_split_still_joins_and_one_right_after_does_not() -> None:
    """Both in one run: whether a name is taken in depends on the rows before it in the same run."""
    before, after = Partition(config(NEVER)), Partition(config(NEVER))
    values = np.random.default_rng(1).uniform(0, 10, 200).tolist()
    rows = [{"features": {"x": v}, "label": "hi" if v > 5 else "lo"} for v in values]
    probe = Partition(config(NEVER))
    splits_at = next(at for at, row in enumerate(rows) if probe.instances(row).counts["models.splits"])
    for partition, at in ((before, splits_at), (after, splits_at + 1)):
        rows_with = [dict(row) for row in rows]
        rows_with[at] = {"features": {"x": values[at], "new": 1.0}, "label": rows[at]["label"]}
        partition.instances(*rows_with)
    assert before.model().schema.names == ("x", "new")
    assert after.model().schema.names == ("x",)
    assert after.counts["features.ignored"] == 1


# -- label requests ---------------------------------------------------------------------------------------


def test_the_features_of_a_block_join_together_with_the_first_row_that_brings_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[int] = []
    grow = SchemaGrowth.grow

    def counted(growth: SchemaGrowth, slot: int, schema: Schema) -> None:
        steps.append(schema.n_attributes)
        grow(growth, slot, schema)

    monkeypatch.setattr(SchemaGrowth, "grow", counted)
    n = 50
    x = np.full((n, n + 1), np.nan)
    x[:, 0] = 1.5
    x[np.arange(1, n), np.arange(n - 1, 0, -1)] = 2.5  # row after row one more, the last column first
    names = ("x", *(f"f{i}" for i in range(n)))
    block = encode_instances(Features.of(names, x), format="arrow")[0]
    partition = Partition(config(NEVER))
    partition.instances({"features": {"x": 1}})
    partition.feed(Record("instances", b"m", block))
    assert steps == [n]  # not one for each row; the last column has no value
    assert partition.model().schema.names == ("x", *(f"f{i}" for i in range(n - 2, -1, -1)))
    assert partition.counts == {"models.created": 1, "instances.answered": 1 + n}


def test_the_strategy_asks_and_the_request_says_what_a_person_needs() -> None:
    partition = Partition(config(ALWAYS, pending_ttl_ms=1000))
    partition.instances({"features": {"x": 1, "colour": "red"}, "label": "a"})
    partition.instances({"features": {"x": 2, "colour": "blue"}, "id": "tx-9"}, at=40)
    (request,) = partition.requests
    assert request == {
        "request_id": "3-1",
        "instance_id": "tx-9",
        "features": {"x": 2.0, "colour": "blue"},
        "prediction": "a",
        "strategy": "always",
        "utility": 0.0,
        "expires_ms": NOW + 1040,
    }
    (sent,) = partition.sent["label-requests"]
    assert (sent.key, sent.timestamp) == (b"m", NOW + 40)


def test_arrays_are_asked_for_with_the_names_of_the_schema() -> None:
    partition = Partition(config(ALWAYS))
    schema = {"attributes": [{"name": "amount"}, {"name": "age"}], "classes": ["no", "yes"]}
    partition.control("create", schema=schema)
    partition.instances({"features": [3, 4]})
    assert partition.requests[0]["features"] == {"amount": 3.0, "age": 4.0}
    assert partition.requests[0]["prediction"] in ("no", "yes")


def test_the_budget_bounds_the_requests() -> None:
    partition = Partition(config({"query": "always", "budget": {"name": "count", "limit": 0.1}}))
    partition.instances(*({"features": [1.0]} for _ in range(100)))
    assert [request["instance_id"] for request in partition.requests] == [f"3-{i}" for i in range(0, 100, 10)]


def test_a_repeated_id_is_answered_but_not_asked_for_again() -> None:
    partition = Partition(config(ALWAYS))
    partition.instances({"features": [1.0], "id": "a"}, {"features": [2.0], "id": "a"})
    partition.instances({"features": [3.0], "id": "a"})
    assert [document["id"] for document in partition.predictions] == ["a", "a", "a"]
    assert [request["features"] for request in partition.requests] == [{"f0": 1.0}]
    assert partition.counts["instances.repeated"] == 2
    partition.labels({"id": "a", "label": "x"})
    partition.instances({"features": [4.0], "id": "a"})
    assert len(partition.requests) == 1
    assert partition.counts["instances.repeated"] == 3


def test_a_repeated_id_with_its_label_settles_the_pending_instance() -> None:
    partition = Partition(config(ALWAYS))
    partition.instances({"features": [1.0], "id": "a"})
    partition.instances({"features": [1.0], "id": "a", "label": "x"})
    partition.labels({"id": "a", "label": "x"})
    assert partition.counts["labels.duplicate"] == 1
    assert partition.task.pending.waiting == 0


def test_the_same_id_under_two_keys_is_two_instances() -> None:
    partition = Partition(config(ALWAYS))
    partition.feed(*(instance({"features": [1.0], "id": "a"}, key=key) for key in "mnm"))
    assert len(partition.requests) == 2
    assert partition.counts["instances.repeated"] == 1


# -- formats and headers ----------------------------------------------------------------------------------


def packed(x: list[list[float]]) -> list[bytes]:
    return encode_instances(Features.of(None, np.array(x)), format="packed")


def test_each_answer_has_the_format_of_its_question_and_its_place() -> None:
    partition = Partition(config(NEVER))
    block = encode_instances(
        Features.of(("f0",), np.array([[1.0], [2.0]])), format="arrow", labels=["a", "b"]
    )[0]
    values = [b'{"features":[1]}', *packed([[1.0]]), block, b'{"features":[2]}']
    partition.feed(*(Record("instances", b"m", value) for value in values))
    sent = partition.sent["predictions"]
    assert [message.value[0] if message.value else None for message in sent] == [
        ord("{"),
        0xD6,
        0xFF,
        ord("{"),
    ]
    decoded = decode_predictions([message.value for message in sent if message.value])
    assert decoded.ids == ["3-0", "3-1", "3-2-0", "3-2-1", "3-3"]
    assert decoded.version.tolist() == [0, 0, 0, 1, 2]


def test_the_format_of_answers_can_be_fixed() -> None:
    partition = Partition(config(NEVER), encoder=Encoder(NAMES, form="packed"))
    partition.instances({"features": [1]})
    (sent,) = partition.sent["predictions"]
    assert sent.value is not None
    assert sent.value[0] == 0xD6


def test_full_headers_say_what_the_record_is() -> None:
    partition = Partition(
        config(ALWAYS), encoder=Encoder(TopicNames("t."), application_id="shop", headers="full")
    )
    trace = [("traceparent", b"00-1"), ("content-type", b"application/json"), ("ce_id", b"old")]
    partition.feed(Record("instances", b"m", b'{"features":[1],"id":"\xc3\xa9"}', 12, trace))
    headers = dict(partition.sent["predictions"][0].headers)
    assert headers == {
        "content-type": b"application/json",
        "ce_specversion": b"1.0",
        "ce_type": b"streamgrove.prediction",
        "ce_source": b"/streamgrove/shop",
        "ce_dataschema": b"urn:streamgrove:prediction:1",
        "ce_id": b"prediction-t.instances-3-0",
        "ce_time": b"2023-11-14T22:13:20.012Z",
        "ce_subject": b"m",
        "grove-model-key": b"m",
        "grove-instance-id": "é".encode(),
        "grove-model-version": b"0",
        "traceparent": b"00-1",
    }
    asked = dict(partition.sent["label-requests"][0].headers)
    assert (asked["grove-strategy"], asked["grove-request-id"]) == (b"always", b"3-0")


def test_minimal_headers_pass_on_only_what_is_not_ours() -> None:
    partition = Partition(config(ALWAYS))
    given = [
        ("tracestate", b"a=b"),
        ("mine", b"\x00"),
        ("content-type", b"application/json"),
        ("grove-x", b"1"),
    ]
    partition.feed(Record("instances", b"m", b'{"features":[1]}', 0, given))
    assert partition.sent["predictions"][0].headers == (("tracestate", b"a=b"), ("mine", b"\x00"))
    assert partition.sent["label-requests"][0].headers == (("tracestate", b"a=b"), ("mine", b"\x00"))


# -- blocks -----------------------------------------------------------------------------------------------


def test_a_block_is_answered_as_a_block_with_the_dead_rows_null() -> None:
    partition = Partition(config(NEVER, models_max_classes=2))
    labels = ["a", "b", "c", None, "a"]
    weights = np.array([1.0, 1.0, 1.0, -1.0, 1.0])
    features = Features.of(("x",), np.arange(5.0).reshape(5, 1))
    block = encode_instances(features, format="arrow", labels=labels, weights=weights)[0]
    partition.feed(Record("instances", b"m", block))
    (sent,) = partition.sent["predictions"]
    assert sent.value is not None
    decoded = decode_predictions([sent.value])
    assert decoded.ids == ["3-0-0", "3-0-1", None, None, "3-0-4"]
    assert decoded.version.tolist() == [0, 1, -1, -1, 2]
    assert decoded.probabilities[0] == {"a": 0.0, "b": 0.0}
    (letter,) = partition.dead_letters
    assert letter.value == block
    headers = dict(letter.headers)
    assert headers["grove-dlq-reason"] == b"bad-rows"
    assert headers["grove-dlq-rows"] == b'{"too-many-classes": "2", "bad-weight": "3"}'
    assert partition.counts["instances.dead-letter"] == 2
    assert partition.counts["instances.answered"] == 3


def test_requests_for_rows_of_a_block_are_told_apart() -> None:
    partition = Partition(config(ALWAYS))
    block = encode_instances(Features.of(("x",), np.array([[1.0], [2.0]])), format="arrow")[0]
    partition.feed(Record("instances", b"m", block))
    assert [request["request_id"] for request in partition.requests] == ["3-0-0", "3-0-1"]
    assert [request["features"] for request in partition.requests] == [{"x": 1.0}, {"x": 2.0}]


@pytest.mark.parametrize("keys", [1, 64])
def test_a_long_run_takes_one_call_into_the_kernels(keys: int) -> None:
    partition = Partition(config(NEVER))
    partition.feed(
        *(
            instance({"features": {"x": 1, "y": 2}, "label": "ab"[i % 2]}, key=f"k{i % keys}")
            for i in range(256)
        )
    )
    calls = []
    table = partition.task.models.table
    answer_ = table.answer
    table.answer = lambda *arguments: calls.append(len(arguments[0])) or answer_(*arguments)  # type: ignore
    partition.feed(*(instance({"features": {"x": 1, "y": i}}, key=f"k{i % keys}") for i in range(256)))
    assert calls == [256]


@pytest.mark.parametrize("learner", ["h-tree", "arf", "leveraging-bagging", "ozaboost", "srp"])
def test_features_that_come_before_the_first_split_are_taken_in(learner: str) -> None:
    """Whatever part of the attributes a leaf or a member sees."""
    body: dict[str, Any] = {"name": learner, "members": 3} if learner in FORESTS else {"name": learner}
    partition = Partition(config(NEVER | {"learner": body}))
    names = [f"x{number}" for number in range(8)]
    for known in range(1, 9):
        features = dict.fromkeys(names[:known], known % 3)
        partition.instances({"features": features, "label": "a"})
    assert partition.model().schema.names == tuple(names)
    draw = np.random.default_rng(7)
    for _ in range(3):
        values = draw.uniform(0, 10, (400, 8))
        partition.instances(
            *(
                {"features": dict(zip(names, row, strict=True)), "label": "b" if row[0] > 5 else "a"}
                for row in values.tolist()
            )
        )
    assert partition.model().summary().splits > 0
    partition.instances({"features": {"late": 1.0, "x0": 2.0}})
    assert partition.model().schema.names == tuple(names)
    assert partition.dead_letters == []
    restored = Model.restore(partition.model().snapshot())
    validate.check(restored)


def test_records_that_cannot_make_their_model_leave_it_to_the_next_record() -> None:
    """As in runs of one record each, also when another key takes the last place meanwhile."""
    empty: dict[str, Any] = {"features": {}}
    wide = {"features": [1.0, 2.0, 3.0]}
    records = [
        instance(empty, key="a"),
        instance(wide, key="b"),
        instance({"features": {"x": 1.0}}, key="b"),
        instance({"features": {"x": 1.0}}, key="c"),
        instance(empty, key="a"),
        instance({"features": {"x": 1.0}, "label": "yes"}, key="a"),
        instance({"features": {"x": 1.0}}, key="a"),
        instance(wide, key="b"),
        instance({"features": {"x": 1.0}}, key="c"),
    ]
    for places in (1, 2, 3):
        given = config(NEVER, models_max_count=places, models_max_attributes=2)
        here, alone = Partition(given), Partition(given)
        here.feed(*records)
        for record in records:
            alone.feed(record)
        assert dict(here.sent) == dict(alone.sent)
        assert (here.counts, here.notices) == (alone.counts, alone.notices)
        assert here.task.digest() == alone.task.digest()
        assert here.counts["models.created"] == places


def test_an_unknown_model_is_refused_by_all_its_records() -> None:
    here = Partition(config(NEVER, models_auto_create=False))
    here.instances(*[{"features": {"x": 1.0}}] * 3)
    assert [letter.reason for letter in here.dead_letters] == ["unknown-model"] * 3
