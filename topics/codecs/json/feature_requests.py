"""Feature requests to JSON, and JSON to feature requests."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import orjson

from topics.codecs.flaws import Flaw, kind, malformed
from topics.codecs.json.lines import write_documents
from topics.columns.records import FeatureRequest, Malformed
from topics.errors import Reason

_TYPES: dict[str, tuple[type, ...]] = {
    "request_id": (str,),
    "instance_id": (str,),
    "features": (list,),
    "cost": (float, int),
    "utility": (float, int, type(None)),
    "known": (dict,),
    "expires_ms": (int,),
}


def write_feature_requests(requests: Sequence[FeatureRequest]) -> list[bytes]:
    """Return one object for each request; an unknown utility is null."""
    return write_documents(
        [{each.name: getattr(one, each.name) for each in dataclasses.fields(one)} for one in requests]
    )


def read_feature_requests(values: Sequence[bytes]) -> list[FeatureRequest | Malformed]:
    """Return for each value the request, or its flaw."""
    return [_request(record, value) for record, value in enumerate(values)]


def _request(record: int, value: bytes) -> FeatureRequest | Malformed:
    try:
        document: Any = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        return malformed(record, Flaw(Reason.NOT_JSON, str(error)))
    if not isinstance(document, dict):
        detail = f"the record must be an object; got {kind(document)}"
        return malformed(record, Flaw(Reason.WRONG_TYPE, detail))
    for name, types in _TYPES.items():
        cell = document.get(name)
        if cell is None and type(None) not in types:
            return malformed(record, Flaw(Reason.MISSING_FIELD, f"{name} is missing"))
        if type(cell) not in types:
            return malformed(record, Flaw(Reason.WRONG_TYPE, f"{name} must not be {kind(cell)}"))
    utility = document["utility"]
    found = {name: document[name] for name in _TYPES} | {"utility": math.nan if utility is None else utility}
    return FeatureRequest(**found)
