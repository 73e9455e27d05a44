"""Encoding of outputs, and decoding for their consumers: oracle, demo, tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import error as StructError

import numpy as np
import pyarrow as pa

from topics.codecs.batch import Batch
from topics.codecs.codec import CODECS, codec
from topics.codecs.content_types import wire_of_value
from topics.codecs.flaws import Flaw, malformed
from topics.codecs.json.feature_requests import read_feature_requests, write_feature_requests
from topics.codecs.json.reports import read_reports, write_reports
from topics.codecs.json.requests import read_label_requests, write_label_requests
from topics.codecs.packed import predictions as packed
from topics.codecs.prediction_row import PredictionRow
from topics.columns.members import members
from topics.columns.records import (
    AuditEntry,
    DriftAlert,
    EvaluationRecord,
    FeatureRequest,
    Format,
    LabelRequests,
    Malformed,
    ModelEvent,
    Predictions,
    ReceivedPredictions,
)
from topics.errors import Reason

# Errors that the readers of predictions raise for a record that is not a prediction. For input topics each
# flaw has its reason instead; on this topic a record of another producer is a mistake.
_NOT_A_PREDICTION = (LookupError, TypeError, ValueError, OSError, StructError, pa.ArrowException)


def encode_predictions(predictions: Predictions, format: Format = "json") -> list[bytes]:
    """Return the values of n prediction records; as arrow the value of one block of n rows."""
    return codec(format).write_predictions(predictions) if len(predictions) else []


def unwritable_predictions(predictions: Predictions, format: Format = "json") -> dict[int, str]:
    """Return the rows that a format cannot hold, each with the part that is too long: packed counts in 16
    bits.
    """
    return packed.unwritable(predictions) if format == "packed" else {}


def decode_predictions(values: Sequence[bytes]) -> ReceivedPredictions:
    """Return the predictions in `values`, in any formats."""
    rows: list[PredictionRow] = []
    places: list[tuple[int, int]] = []
    bad: list[Malformed] = []
    for record, value in enumerate(values):
        wire = wire_of_value(value)
        try:
            decoded = CODECS["json" if wire == "cloudevent" or wire == "framed" else wire].read_predictions(
                value
            )
        except _NOT_A_PREDICTION as error:
            bad.append(
                malformed(record, Flaw(Reason.WRONG_TYPE, f"the record must be a prediction; {error!r}"))
            )
            continue
        rows.extend(decoded)
        places.extend((record, row) for row in range(len(decoded)))
    place = np.array(places, dtype=np.int32).reshape(-1, 2)
    return ReceivedPredictions(
        record=place[:, 0],
        row=place[:, 1],
        ids=[row.id for row in rows],
        labels=[row.label for row in rows],
        probabilities=[row.probabilities for row in rows],
        version=np.array([row.version for row in rows], dtype=np.int64),
        malformed=bad,
        **{column: [row.members.get(column) for row in rows] for column in members(Predictions)},
    )


def encode_label_requests(requests: LabelRequests) -> list[bytes]:
    """Return the values of n label requests (JSON)."""
    return write_label_requests(requests)


def decode_label_requests(values: Sequence[bytes]) -> LabelRequests:
    """Return the label requests in `values`."""
    record = np.arange(len(values), dtype=np.int32)
    offsets = list(range(len(values)))
    return read_label_requests(Batch(0, record, offsets, list(values), [], np.zeros_like(record)))


def encode_feature_requests(requests: Sequence[FeatureRequest]) -> list[bytes]:
    """Return the values of n feature requests (JSON)."""
    return write_feature_requests(requests)


def decode_feature_requests(values: Sequence[bytes]) -> list[FeatureRequest | Malformed]:
    """Return for each value the feature request, or its flaw."""
    return read_feature_requests(values)


def encode_drift_alerts(alerts: Iterable[DriftAlert]) -> list[bytes]:
    """Return the values of drift alerts (JSON)."""
    return write_reports(alerts)


def decode_drift_alerts(values: Iterable[bytes]) -> list[DriftAlert | Malformed]:
    """Return for each value the alert, or its flaw."""
    return read_reports(DriftAlert, values)


def encode_evaluations(evaluations: Iterable[EvaluationRecord]) -> list[bytes]:
    """Return the values of evaluations (JSON)."""
    return write_reports(evaluations)


def decode_evaluations(values: Iterable[bytes]) -> list[EvaluationRecord | Malformed]:
    """Return for each value the evaluation, or its flaw."""
    return read_reports(EvaluationRecord, values)


def encode_audit(entries: Iterable[AuditEntry]) -> list[bytes]:
    """Return the values of audit entries (JSON)."""
    return write_reports(entries)


def decode_audit(values: Iterable[bytes]) -> list[AuditEntry | Malformed]:
    """Return for each value the audit entry, or its flaw."""
    return read_reports(AuditEntry, values)


def encode_model_events(events: Iterable[ModelEvent]) -> list[bytes]:
    """Return the values of model events (JSON)."""
    return write_reports(events)


def decode_model_events(values: Iterable[bytes]) -> list[ModelEvent | Malformed]:
    """Return for each value the model event, or its flaw."""
    return read_reports(ModelEvent, values)
