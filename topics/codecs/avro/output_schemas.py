"""Output schemas: the Avro schemas of answers and reports, made of the declarations of their records.

`python -m topics.codecs.avro.output_schemas` prints those that are not released yet (topics/schemas).
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from topics.codecs.avro.avro_schema import AvroSchema
from topics.columns.members import members
from topics.columns.records import DriftAlert, EvaluationRecord, LabelRequests, Predictions

Output = Literal["prediction", "label-request", "drift-alert", "evaluation"]
OUTPUTS: Final[tuple[Output, ...]] = get_args(Output)
NAMESPACE: Final = "streamgrove"
JSON_TEXT: Final = "streamgrove.json"
"""Property of a field of strings that hold JSON."""

_NUMBER: Final = ["null", "double"]
_CELL: Final = ["null", "double", "string"]
_STRINGS: Final = {"type": "array", "items": "string"}
_TYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "str": "string",
        "int": "long",
        "bool": "boolean",
        "float": _NUMBER,  # NaN in the record is null, as in JSON
        "int | None": ["null", "long"],
        "str | None": ["null", "string"],
        "list[str] | None": ["null", _STRINGS],
        "dict[str, int] | None": ["null", {"type": "map", "values": "long"}],
        "dict[str, dict[str, float]] | None": [
            "null",
            {"type": "map", "values": {"type": "map", "values": _NUMBER}},
        ],
    }
)


def _field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """Return a field; one that may be null is null by default, so that older records can be read."""
    nullable = isinstance(kind, list) and kind[0] == "null"
    return {"name": name, "type": kind} | ({"default": None} if nullable else {}) | more


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


_ACQUIRED: Final = _record(
    "Acquired", _field("features", _STRINGS), _field("cost", "double"), _field("stop", "string")
)
_LISTS: Final = {"type": "array", "items": {"type": "array", "items": "double"}}
_SPECIAL: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "acquired": ["null", _ACQUIRED],
        "raw_probabilities": ["null", {"type": "map", "values": "double"}],
        "set": ["null", _STRINGS],
        "ranges": ["null", {"type": "map", "values": {"type": "array", "items": "double"}}],
        "probabilities": ["null", {"type": "map", "values": "double"}],
        "confusion": ["null", _record("Confusion", _field("classes", _STRINGS), _field("weights", _LISTS))],
        "learning_curve": [
            "null",
            _record(
                "LearningCurve",
                _field("labels", {"type": "array", "items": {"type": "array", "items": "long"}}),
                _field("accuracy", {"type": "array", "items": {"type": "array", "items": _NUMBER}}),
            ),
        ],
        "level": "string",
        "inputs": [
            "null",
            {
                "type": "array",
                "items": _record(
                    "MovedInput",
                    _field("kind", "string"),
                    _field("feature", ["null", "string"]),
                    *(_field(name, "double") for name in ("ks", "psi", "hellinger", "p")),
                    _field("missing", {"type": "array", "items": "double"}),
                    _field("unseen", "double"),
                ),
            },
        ],
    }
)
"""Types of fields by name, where the declaration has none for Avro."""


def current(output: Output) -> str:
    """Return the text of the schema of an output, as this release writes it."""
    schema = {"namespace": NAMESPACE, **_SCHEMAS[output]()}
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


@cache
def output_schema(output: Output) -> AvroSchema:
    """Return the schema of an output, as this release writes it."""
    return AvroSchema.of(current(output))


def released(output: Output) -> dict[int, str]:
    """Return the texts of all released schemas of an output, by version."""
    texts = {}
    for file in resources.files("topics.schemas").iterdir():
        match = re.fullmatch(rf"{output}-v(\d+)\.avsc", file.name)
        if match:
            texts[int(match[1])] = file.read_text(encoding="utf-8")
    return dict(sorted(texts.items()))


def _prediction() -> dict[str, Any]:
    return _record(
        "Prediction",
        _field("id", "string"),
        _field("label", ["null", "string"]),
        _field("probabilities", {"type": "map", "values": "double"}),
        _field("version", "long"),
        _field("untrained", "boolean", default=False),
        *_optional(Predictions),
    )


def _label_request() -> dict[str, Any]:
    features = ["null", {"type": "map", "values": _CELL}, {"type": "array", "items": _CELL}]
    return _record(
        "LabelRequest",
        _field("request_id", "string"),
        _field("instance_id", "string"),
        _field("features", features),
        _field("prediction", ["null", "string"]),
        _field("strategy", "string"),
        _field("utility", _NUMBER),
        _field("expires_ms", ["null", "long"]),
        *_optional(LabelRequests),
    )


def _optional(kind: type) -> list[dict[str, Any]]:
    """Return the fields of optional members, which are null where a row lacks them."""
    names = [member.name for member in members(kind).values()]
    return [_field(name, _SPECIAL.get(name, ["null", "string"])) for name in names]


def _report(kind: type, name: str) -> dict[str, Any]:
    """Return the schema of a dataclass of reports."""
    fields = []
    for field in dataclasses.fields(kind):
        if field.name == "challenge":
            fields.append(_field(field.name, ["null", "string"], **{JSON_TEXT: True}))
        else:
            avro = _SPECIAL.get(field.name) or _TYPES[str(field.type)]
            fields.append(_field(field.name, avro, **_default(field, avro)))
    return _record(name, *fields)


def _default(field: dataclasses.Field[Any], kind: Any) -> dict[str, Any]:
    """Return the default of a field that is never null; a nullable field is null by default."""
    has_default = field.default is not dataclasses.MISSING and not isinstance(kind, list)
    return {"default": field.default} if has_default else {}


_SCHEMAS: Final[Mapping[Output, Any]] = MappingProxyType(
    {
        "prediction": _prediction,
        "label-request": _label_request,
        "drift-alert": lambda: _report(DriftAlert, "DriftAlert"),
        "evaluation": lambda: _report(EvaluationRecord, "Evaluation"),
    }
)


def main() -> None:
    """Print each schema that differs from its last release, under the name of its next file."""
    for output in OUTPUTS:
        versions = released(output)
        last = max(versions, default=0)
        if versions.get(last) != current(output):
            sys.stdout.write(f"topics/schemas/{output}-v{last + 1}.avsc\n{current(output)}")


if __name__ == "__main__":
    main()
