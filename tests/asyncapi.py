"""AsyncAPI: the document of all topics, made of the catalogue, the released schemas and docs/records.md.

`python -m tests.asyncapi` writes docs/asyncapi.yaml (a test holds that it is current).
"""

import dataclasses
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import orjson
import yaml

from topics.codecs.avro.output_schemas import OUTPUTS, current
from topics.codecs.content_types import ARROW, JSON, PACKED
from topics.codecs.json.reader import COMMANDS
from topics.columns.records import MAX_WEIGHT, AuditEntry, DriftAlert, EvaluationRecord, ModelEvent
from topics.definitions import CATALOGUE, MODEL_KEY, Topic, TopicNames

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "asyncapi.yaml"
AVRO_FORMAT = "application/vnd.apache.avro+json;version=1.9.0"
EXAMPLE = re.compile(r'^```json title="(\S+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
BINDING = "0.5.0"

NUMBER: dict[str, Any] = {"type": ["number", "null"]}
TEXT = {"type": "string", "minLength": 1}
ID = {"oneOf": [TEXT, {"type": "integer"}]}
CLASS = {"oneOf": [TEXT, {"type": "integer"}, {"type": "boolean"}]}
CELL = {"type": ["number", "string", "boolean", "null"]}
FEATURES = {
    "oneOf": [
        {"type": "object", "minProperties": 1, "additionalProperties": CELL},
        {"type": "array", "minItems": 1, "items": CELL},
    ]
}
WEIGHT = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_WEIGHT}
SHARES = {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1}}
TYPES: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "float": NUMBER,
    "int | None": {"type": ["integer", "null"]},
    "float | None": NUMBER,
    "str | None": {"type": ["string", "null"]},
}


def _object(required: tuple[str, ...], **members: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": members}


def _report(kind: type) -> dict[str, Any]:
    """Return the schema of a report: members without a default are required."""
    fields = dataclasses.fields(kind)
    required = [field.name for field in fields if field.default is dataclasses.MISSING]
    members = {field.name: TYPES.get(str(field.type), {}) for field in fields}
    return _object(tuple(required), **members)


PAYLOADS: dict[str, dict[str, Any]] = {
    "instances": _object(("features",), id=ID, features=FEATURES, label=CLASS, weight=WEIGHT),
    "labels": _object(
        ("id",),
        id=ID,
        label=CLASS,
        declined={"type": "boolean"},
        weight=WEIGHT,
        annotator=ID,
        features=FEATURES,
    )
    | {"anyOf": [{"required": ["label"]}, {"required": ["declined"]}]},
    "feature-values": _object(
        ("id",),
        id=ID,
        features={"type": "object", "additionalProperties": {"type": ["number", "string", "boolean"]}},
        unavailable={"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        finish={"type": "boolean"},
    )
    | {"anyOf": [{"required": [name]} for name in ("features", "unavailable", "finish")]},
    "controls": _object(("command",), command={"enum": list(COMMANDS)}),
    "predictions": _object(
        ("id", "label", "probabilities", "version"),
        id=TEXT,
        label={"type": ["string", "null"]},
        probabilities=SHARES,
        version={"type": "integer", "minimum": 0},
        untrained={"const": True},
        explanation={"type": "string"},
        challenger={"type": "string"},
        acquired=_object(("features", "cost", "stop")),
    ),
    "label-requests": _object(
        ("request_id", "instance_id", "features", "prediction", "strategy", "utility", "expires_ms"),
        request_id=TEXT,
        instance_id=TEXT,
        features=FEATURES,
        prediction={"type": ["string", "null"]},
        strategy=TEXT,
        utility=NUMBER,
        expires_ms={"type": ["integer", "null"]},
        explanation={"type": "string"},
        probabilities=SHARES,
        ranges={"type": "object"},
        reason={"type": "string"},
        challenger={"type": "string"},
    ),
    "feature-requests": _object(
        ("request_id", "instance_id", "features", "cost", "utility", "known", "expires_ms"),
        request_id=TEXT,
        instance_id=TEXT,
        features={"type": "array", "items": {"type": "string"}},
        cost={"type": "number"},
        utility=NUMBER,
        known={"type": "object"},
        expires_ms={"type": "integer"},
    ),
    "drift-alerts": _report(DriftAlert),
    "model-events": _report(ModelEvent),
    "evaluations": _report(EvaluationRecord),
    "audit": _report(AuditEntry),
}
"""Schemas of JSON values by topic; other topics hold bytes of streamgrove, or records of other topics."""


def examples(topic: str) -> list[Any]:
    """Return the good JSON examples of a topic in docs/records.md."""
    page = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
    return [orjson.loads(text) for name, text in EXAMPLE.findall(page) if name == topic]


def document() -> dict[str, Any]:
    """Return the AsyncAPI document."""
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    for topic in CATALOGUE:
        name = topic.name
        channels[name] = _channel(topic)
        messages |= _messages(topic)
        if topic.direction != "internal":
            action = "receive" if topic.direction == "in" else "send"
            operations[f"{action}-{name}"] = {
                "action": action,
                "channel": {"$ref": f"#/channels/{name}"},
                "summary": _sentence(topic),
            }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "streamgrove",
            "version": project["version"],
            "description": "Topics of a streamgrove worker, with the default prefix of their names.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": JSON,
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages},
    }


def _sentence(topic: Topic) -> str:
    return topic.value[0].upper() + topic.value[1:] + "."


def _channel(topic: Topic) -> dict[str, Any]:
    settings = {"cleanup.policy": [topic.cleanup], "retention.ms": topic.retention_ms}
    if topic.max_message_bytes is not None:
        settings["max.message.bytes"] = topic.max_message_bytes
    if topic.cleanup == "compact":
        settings["delete.retention.ms"] = topic.delete_retention_ms
    address = TopicNames().of(topic)
    binding = {"topic": address, "topicConfiguration": settings, "bindingVersion": BINDING}
    return {
        "address": address,
        "description": f"{_sentence(topic)} The key is: {topic.key}.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in _messages(topic)},
        "bindings": {"kafka": binding},
    }


def _messages(topic: Topic) -> dict[str, Any]:
    """Return the messages of a topic by name: one for each format with a schema, and one for the others."""
    key = {"kafka": {"key": {"type": "string"}, "bindingVersion": BINDING}} if topic.key == MODEL_KEY else {}
    base: dict[str, Any] = {"summary": _sentence(topic)} | ({"bindings": key} if key else {})
    if topic.name not in PAYLOADS:
        return {topic.name: base | {"contentType": "application/octet-stream"}}
    shown = [{"payload": example} for example in examples(topic.name)]
    messages = {topic.name: base | {"contentType": JSON, "payload": PAYLOADS[topic.name], "examples": shown}}
    for output in OUTPUTS:
        if f"{output}s" == topic.name:
            schema = json.loads(current(output))
            messages[f"{topic.name}-avro"] = base | {
                "contentType": "application/avro",
                "description": "With output.format=avro: 0x00, the id of the schema in 4 bytes, the value.",
                "payload": {"schemaFormat": AVRO_FORMAT, "schema": schema},
            }
    if topic.name in ("instances", "labels", "predictions"):
        for kind, content_type in (("packed", PACKED), ("arrow", ARROW)):
            described = {"contentType": content_type, "description": f"{kind}: docs/records.md"}
            messages[f"{topic.name}-{kind}"] = base | described
    return messages


class _Plain(yaml.SafeDumper):  # type: ignore[misc]  # yaml has no types
    """Writes equal objects in full instead of as aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def text() -> str:
    """Return the document as YAML."""
    body = yaml.dump(document(), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120)
    return f"# Made by: python -m tests.asyncapi\n{body}"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
