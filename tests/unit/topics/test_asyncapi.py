"""docs/asyncapi.yaml describes every topic, and its schemas accept what the workers accept."""

from typing import Any

import jsonschema
import pytest
import yaml

from tests import asyncapi
from topics.definitions import CATALOGUE, TopicNames

DOCUMENT: dict[str, Any] = yaml.safe_load(asyncapi.PAGE.read_text(encoding="utf-8"))


def test_is_current() -> None:
    assert asyncapi.PAGE.read_text(encoding="utf-8") == asyncapi.text(), "run python -m tests.asyncapi"


def test_has_every_topic_with_its_settings() -> None:
    assert [channel["address"] for channel in DOCUMENT["channels"].values()] == list(TopicNames().all())
    for topic in CATALOGUE:
        settings = DOCUMENT["channels"][topic.name]["bindings"]["kafka"]["topicConfiguration"]
        assert settings["retention.ms"] == topic.retention_ms
        assert settings.get("max.message.bytes") == topic.max_message_bytes


def test_has_an_operation_for_every_topic_of_applications() -> None:
    actions = {"in": "receive", "out": "send"}
    expected = {
        f"{actions[topic.direction]}-{topic.name}" for topic in CATALOGUE if topic.direction != "internal"
    }
    assert set(DOCUMENT["operations"]) == expected


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [ref for part in node.values() for ref in references(part)]
    return [ref for part in node for ref in references(part)] if isinstance(node, list) else []


def test_every_reference_leads_somewhere() -> None:
    found = references(DOCUMENT)
    assert found
    for reference in found:
        node = DOCUMENT
        for name in reference.removeprefix("#/").split("/"):
            node = node[name]


@pytest.mark.parametrize("name", asyncapi.PAYLOADS)
def test_every_example_of_the_page_fits_its_schema(name: str) -> None:
    payload = DOCUMENT["components"]["messages"][name]["payload"]
    jsonschema.Draft7Validator.check_schema(payload)
    shown = asyncapi.examples(name)
    assert shown
    for example in shown:
        jsonschema.validate(example, payload, jsonschema.Draft7Validator)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("instances", {"id": "a"}),
        ("instances", {"features": {}}),
        ("instances", {"features": {"a": {}}}),
        ("instances", {"features": [1], "weight": 0}),
        ("labels", {"id": "a"}),
        ("controls", {"command": "craete"}),
        ("feature-values", {"id": "a"}),
        ("audit", {"id": "a", "user": "ann"}),
    ],
)
def test_bad_records_do_not_fit(name: str, value: dict[str, Any]) -> None:
    payload = DOCUMENT["components"]["messages"][name]["payload"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, payload, jsonschema.Draft7Validator)
