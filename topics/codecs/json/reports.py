"""Drift alerts, model events, evaluations and audit entries to JSON, one object each, and JSON to these."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, TypeVar, get_type_hints

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from topics.codecs.flaws import Flaw, malformed, quote
from topics.codecs.json.lines import write_documents
from topics.columns.records import LATEST_MS, AuditEntry, DriftAlert, EvaluationRecord, Malformed, ModelEvent
from topics.errors import Reason

Report = TypeVar("Report", DriftAlert, EvaluationRecord, AuditEntry, ModelEvent)
_Time = Annotated[int, Field(ge=-1, le=LATEST_MS)]


def write_reports(reports: Iterable[DriftAlert | EvaluationRecord | AuditEntry | ModelEvent]) -> list[bytes]:
    """Return one object for each report; NaN becomes null."""
    return write_documents(list(reports))  # orjson supports dataclasses


def read_reports(kind: type[Report], values: Iterable[bytes]) -> list[Report | Malformed]:
    """Return for each value the report, or its flaw, in order."""
    return [_read(kind, record, value) for record, value in enumerate(values)]


def _read(kind: type[Report], record: int, value: bytes) -> Report | Malformed:
    try:
        document: dict[str, Any] = orjson.loads(value)
        # Members with a default came with a later release: older records do not have them.
        members = {
            field.name: document[field.name]
            for field in fields(kind)
            if field.name in document or field.default is MISSING
        }
    except orjson.JSONDecodeError as error:
        return malformed(record, Flaw(Reason.NOT_JSON, str(error)))
    except (KeyError, TypeError) as error:
        return malformed(
            record, Flaw(Reason.MISSING_FIELD, f"the record must be a {kind.__name__}; {error!r}")
        )
    for field in fields(kind):
        if field.type == "float" and members.get(field.name, 0.0) is None:
            members[field.name] = math.nan
    if kind is AuditEntry and (flaw := _flaw_of_entry(members)) is not None:
        return malformed(record, flaw)
    return kind(**members)


def _flaw_of_entry(members: Mapping[str, Any]) -> Flaw | None:
    """Return the first member of an audit entry that has another type, because the topic may hold anything.

    The readers of the other reports check the figures that they use.
    """
    try:
        _entry_check().model_validate(members)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        return Flaw(Reason.WRONG_TYPE, f"{quote(name)}: {first['msg']}")
    return None


@cache
def _entry_check() -> type[BaseModel]:
    """Return the check of an entry's types, made of the types of the class."""
    members: dict[str, Any] = {
        name: (_Time if name == "at_ms" else hint, None) for name, hint in get_type_hints(AuditEntry).items()
    }
    return create_model(AuditEntry.__name__, __config__=ConfigDict(strict=True), **members)
