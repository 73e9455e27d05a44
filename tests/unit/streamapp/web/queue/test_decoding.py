"""Records of topics as cards: what a person sees of them, and which ones are left out."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from confluent_kafka import Message

from streamapp.web.queue.cards import (
    CELLS_MAX,
    RULES_MAX,
    TEXT_MAX,
    WANTED_MAX,
    Attribute,
    Given,
    Label,
    Range,
)
from streamapp.web.queue.closed_classes import ClassControl
from streamapp.web.queue.record_decoding import (
    class_controls_of,
    declared_in,
    feature_requests_of,
    labels_of,
    requests_of,
    values_of,
)
from topics.codecs.avro.output_reader import OutputReader
from topics.codecs.frames.wire_format import framed
from topics.errors import UnknownSchemaError
from topics.registry.registered_schema import RegisteredSchema, SchemaId

ASKED: dict[str, Any] = {
    "request_id": "r",
    "instance_id": "i",
    "prediction": "a",
    "strategy": "s",
    "features": {},
}
BUY: dict[str, Any] = {"request_id": "q", "instance_id": "i", "features": ["age"], "cost": 2, "utility": None}
BUY |= {"known": {}, "expires_ms": 7}


def record(offset: int, body: object, key: bytes | None = b"k", partition: int = 3) -> Message:
    """Return a record whose time is a thousand times its offset."""
    value = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Message(
        topic="t", partition=partition, offset=offset, key=key, value=value, timestamp=(1, 1000 * offset)
    )


def test_a_request_for_a_label_becomes_a_card_with_all_that_the_record_has() -> None:
    body = ASKED | {
        "features": {"amount": 2.5, "country": "FR", "none": None},
        "utility": 0.25,
        "expires_ms": 9000,
        "explanation": "amount <= 7.5",
        "probabilities": {"a": 0.75, "b": 0.25},
        "ranges": {"amount": [0.5, 980.0, 1042]},
    }
    (card,) = requests_of([record(5, body)])
    assert (card.partition, card.key, card.request_id, card.instance_id) == (3, "k", "r", "i")
    assert (card.asked_ms, card.expires_ms, card.utility) == (5000, 9000, 0.25)
    assert (card.prediction, card.strategy, card.rules) == ("a", "s", "amount <= 7.5")
    assert card.features == {"amount": 2.5, "country": "FR", "none": None}
    assert card.shares == {"a": 0.75, "b": 0.25}
    assert card.seen == {"amount": Range(0.5, 980.0, 1042)}
    assert (card.kind, card.subject, card.left_out) == ("label", "i", 0)


def test_a_request_has_its_reason_which_may_be_of_any_length() -> None:
    plain = ASKED | {"features": {"x": 1}}
    bodies = [*(plain | {"reason": reason} for reason in ("disagreement", "x" * (TEXT_MAX + 1), "")), plain]
    cards = requests_of([record(n, body) for n, body in enumerate(bodies)])
    assert [card.reason for card in cards] == ["disagreement", "x" * TEXT_MAX, None, None]


def test_records_without_a_readable_key_or_body_are_left_out_and_the_others_keep_their_own_times() -> None:
    records = [
        record(1, ASKED, key=None),
        record(2, ASKED, key=b"\xff"),
        record(3, b"{"),
        record(4, ASKED | {"instance_id": "four", "features": {"x": 1}}),
        record(5, ASKED | {"instance_id": "five", "features": {"y": 2}}),
    ]
    cards = requests_of(records)
    assert [(card.instance_id, card.asked_ms) for card in cards] == [("four", 4000), ("five", 5000)]
    assert [card.features for card in cards] == [{"x": 1.0}, {"y": 2.0}]
    bought = feature_requests_of([record(1, BUY, key=None), record(2, b"{"), record(3, BUY), record(4, BUY)])
    assert [card.asked_ms for card in bought] == [3000, 4000]


def test_features_by_position_have_the_names_that_models_give_them() -> None:
    (card,) = requests_of([record(1, ASKED | {"features": [1.5, None, "red"]})])
    assert card.features == {"f0": 1.5, "f1": None, "f2": "red"}


@pytest.mark.parametrize("more", [0, 3])
def test_a_card_has_as_many_features_and_as_long_texts_as_a_person_reads(more: int) -> None:
    cells: dict[str, Any] = {f"x{n}": n for n in range(CELLS_MAX - 1 + more)}
    first = {"long": "t" * (TEXT_MAX + more)}
    rules = "r" * (RULES_MAX + more)
    (asked,) = requests_of([record(1, ASKED | {"features": first | cells, "explanation": rules})])
    (bought,) = feature_requests_of([record(1, BUY | {"known": first | cells})])
    for card in (asked, bought):
        assert len(card.features) == CELLS_MAX
        assert card.left_out == more
        assert card.features["long"] == "t" * TEXT_MAX
    assert asked.rules == ("r" * RULES_MAX + " …" if more else rules)


def test_a_request_for_features_becomes_a_card() -> None:
    body = BUY | {
        "features": ["age", "income", "age"],
        "known": {"amount": 9000, "colour": "red"},
        "utility": 0.5,
    }
    card, other = feature_requests_of([record(5, body), record(6, BUY, partition=0)])
    assert (card.partition, card.key, card.request_id, card.instance_id) == (3, "k", "q", "i")
    assert (card.asked_ms, card.expires_ms, card.utility, card.cost) == (5000, 7, 0.5, 2.0)
    assert card.wanted == ("age", "income")
    assert card.features == {"amount": 9000.0, "colour": "red"}
    assert (card.kind, card.subject, card.prediction) == ("features", "q", None)
    assert (other.partition, other.wanted) == (0, ("age",))


@pytest.mark.parametrize(
    ("features", "is_shown"),
    [
        ([f"x{n}" for n in range(WANTED_MAX)], True),
        ([f"x{n}" for n in range(WANTED_MAX + 1)], False),
        (["x" * TEXT_MAX], True),
        (["x" * (TEXT_MAX + 1)], False),
        (["x", ""], False),
        ([], False),
    ],
)
def test_a_request_for_more_than_a_person_reads_is_left_to_programs(
    features: list[str], is_shown: bool
) -> None:
    assert len(feature_requests_of([record(1, BUY | {"features": features})])) == int(is_shown)


def test_answers_of_any_sender_have_the_time_and_key_of_their_record() -> None:
    labels = labels_of(
        [
            record(1, {"id": "a", "label": "yes", "annotator": "ann"}),
            record(2, {"id": "broken"}),
            record(3, {"id": "b", "declined": True}, key=b"other"),
        ]
    )
    assert labels == [Label("k", "a", "yes", "ann", 1000), Label("other", "b", None, None, 3000)]
    values = values_of(
        [
            record(1, {"id": "broken"}),
            record(2, {"id": "a", "features": {"age": 3}, "unavailable": {"income": "secret"}}),
            record(3, {"id": "b", "finish": True}),
        ]
    )
    assert [(each.instance_id, each.timestamp) for each in values] == [("a", 2000), ("b", 3000)]
    assert values[0].given == Given({"age": 3.0}, {"income": "secret"}, False)
    assert values[1].given.finish


def test_a_schema_declares_classes_and_features() -> None:
    schema = {
        "classes": ["a", 1, True, "", 0.5, None],
        "attributes": [
            {"name": "x", "range": [0, 1.5]},
            {"name": "y", "range": [0]},
            {"name": "colour", "kind": "nominal", "values": ["red", 3, "t" * (TEXT_MAX + 1)], "open": True},
            {"name": 7},
            "z",
        ],
    }
    records = [record(1, {"command": "create", "schema": schema}), record(2, {"command": "delete"})]
    classes, attributes = declared_in(records)
    assert classes == [("k", "a"), ("k", "1"), ("k", "true")]
    assert attributes == [
        Attribute("k", "x", "numeric", (), False, 0.0, 1.5),
        Attribute("k", "y", "numeric", (), False, None, None),
        Attribute("k", "colour", "nominal", ("red", "t" * TEXT_MAX), True, None, None),
    ]


ATTRIBUTES = [{"name": "x"}]


@pytest.mark.parametrize(
    ("schema", "classes"),
    [
        ({"attributes": ATTRIBUTES, "classes": ["a", "b"]}, ("a", "b")),
        ({"attributes": ATTRIBUTES, "classes": ["a"], "classes_open": True}, None),
        ({"attributes": ATTRIBUTES}, None),
        ({"attributes": ATTRIBUTES, "classes": []}, None),
    ],
)
def test_a_control_closes_the_classes_of_its_schema(schema: dict[str, Any], classes: Any) -> None:
    (control,) = class_controls_of([record(4, {"command": "create", "schema": schema})])
    assert control == ClassControl("k", "create", 4000, True, classes)


@pytest.mark.parametrize(
    "schema",
    [
        {"attributes": ATTRIBUTES, "classes": ["a", "a"]},
        {"attributes": ATTRIBUTES, "classes": ["a", None]},
        {"attributes": ATTRIBUTES, "classes": "a"},
        {"attributes": ATTRIBUTES, "classes": ["a"], "classes_open": 1},
        {"attributes": ATTRIBUTES, "classes": ["a"], "more": 1},
        {"attributes": [], "classes": ["a"]},
        {"classes": ["a"]},
        ["a"],
    ],
)
def test_a_schema_that_the_worker_refuses_closes_nothing(schema: Any) -> None:
    records = [record(1, {"command": "create", "schema": schema}), record(2, {"command": "delete"})]
    assert class_controls_of(records) == [ClassControl("k", "delete", 2000)]


def part_of_file(head: object, magic: bytes = b"grovetrv", **members: Any) -> dict[str, Any]:
    """Return the control that carries the start of a model file (docs/portable-models.md)."""
    text = json.dumps(head).encode()
    data = struct.pack("<8sIIQ", magic, 1, len(text), 100) + text + b"body"
    body = {"command": "import", "id": "f", "part": 1, "parts": 2, "data": base64.b64encode(data).decode()}
    return body | members


CLOSED = {"schema": {"attributes": ATTRIBUTES, "classes": ["a", "b"]}}


@pytest.mark.parametrize(
    ("body", "classes"),
    [
        (part_of_file(CLOSED), ("a", "b")),
        (part_of_file(CLOSED, magic=b"othertrv"), None),
        (part_of_file({"schema": {"attributes": ATTRIBUTES}}), None),
        (part_of_file({"schema": "a"}), None),
        (part_of_file([]), None),
        (part_of_file(CLOSED, data="????"), None),
        (part_of_file(CLOSED, part=2), None),
    ],
)
def test_the_first_part_of_a_model_file_closes_the_classes_of_its_schema(
    body: dict[str, Any], classes: Any
) -> None:
    (control,) = class_controls_of([record(4, body)])
    assert (control.command, control.id, control.part, control.parts) == ("import", "f", body["part"], 2)
    assert (control.classes, control.replaces) == (classes, False)
    (control,) = class_controls_of([record(4, body | {"replace": True})])
    assert control.replaces


def test_labels_values_and_controls_may_be_by_a_schema_of_a_registry() -> None:
    def schema_of(schema_id: SchemaId) -> RegisteredSchema:
        if schema_id != 1:
            raise UnknownSchemaError(str(schema_id))
        return RegisteredSchema(1, "JSON", "{}")

    def by_schema(offset: int, body: object, number: int = 1) -> Message:
        return record(offset, framed(number, json.dumps(body).encode()))

    outputs = OutputReader(schema_of)
    label = {"id": "i", "label": "a"}
    labels = [by_schema(1, label), by_schema(2, label, 9), record(3, label)]
    assert [given.timestamp for given in labels_of(labels, outputs)] == [1000, 3000]
    (values,) = values_of([by_schema(4, {"id": "i", "features": {"x": 1}})], outputs)
    assert values.given == Given({"x": 1.0}, {}, False)
    create = {"command": "create", "schema": {"classes": ["a"], "attributes": [{"name": "x"}]}}
    classes, attributes = declared_in([by_schema(5, create)], outputs)
    assert (classes, [attribute.name for attribute in attributes]) == ([("k", "a")], ["x"])
    assert class_controls_of([by_schema(5, create)], outputs) == class_controls_of([record(5, create)])
