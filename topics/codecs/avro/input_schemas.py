"""Input schemas: the Avro schemas of instances and labels that a replay sends."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, Final

from topics.codecs.avro.avro_schema import NAME

INSTANCE: Final = "Instance"
LABEL: Final = "Label"
NAMESPACE: Final = "streamgrove"

_NUMBER: Final = ["null", "double"]
_TEXT: Final = ["null", "string"]
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")


def instance_schema(
    names: Sequence[str] | None, nominal: Collection[int], *, has_ids: bool, has_labels: bool
) -> str:
    """Return the schema of instances; `nominal` are the columns of strings; names None: by position."""
    fields: list[dict[str, Any]] = [{"name": "id", "type": "string"}] if has_ids else []
    fields.append({"name": "features", "type": _features(names, nominal)})
    if has_labels:
        fields.append({"name": "label", "type": _TEXT, "default": None})
    return _schema(INSTANCE, fields)


def label_schema() -> str:
    """Return the schema of labels."""
    return _schema(LABEL, [{"name": "id", "type": "string"}, {"name": "label", "type": "string"}])


def _features(names: Sequence[str] | None, nominal: Collection[int]) -> dict[str, Any]:
    if names is None:
        return {"type": "array", "items": ["null", "double", "string"]}
    fields: list[dict[str, Any]] = []
    used: set[str] = set()
    for column, name in enumerate(names):
        own = _avro_name(name, used)
        used.add(own)
        kind = _TEXT if column in nominal else _NUMBER
        fields.append({"name": own, "type": kind, "default": None} | ({} if own == name else {NAME: name}))
    return {"type": "record", "name": "Features", "fields": fields}


def _avro_name(name: str, used: Collection[str]) -> str:
    """Return a name that Avro allows, and that no other feature has."""
    own = _NOT_IN_NAMES.sub("_", name)
    if not own or own[0].isdigit():
        own = f"_{own}"
    number, base = 1, own
    while own in used:
        number += 1
        own = f"{base}_{number}"
    return own


def _schema(name: str, fields: list[dict[str, Any]]) -> str:
    return json.dumps(
        {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}, ensure_ascii=False
    )
