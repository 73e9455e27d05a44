"""Drift alerts, model events, evaluations and audit entries to JSON, one object each, and JSON to these."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import orjson

from topics.codecs.flaws import Flaw, malformed
from topics.codecs.json.lines import write_documents
from topics.columns.records import AuditEntry, DriftAlert, EvaluationRecord, Malformed, ModelEvent
from topics.errors import Reason

Report = TypeVar("Report", DriftAlert, EvaluationRecord, AuditEntry, ModelEvent)


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
    return kind(**members)
