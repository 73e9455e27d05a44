"""Codecs: batches of records to columns, and columns to records. The public interface of the package.

Decoding never raises because of the content of a record: each record becomes rows, a `Malformed`, or (a block
with some bad rows) both. The format of a record follows from its `content-type` header, else from its first
byte; a run may mix formats.
"""

from __future__ import annotations

from topics.codecs.content_types import CONTENT_TYPES
from topics.codecs.decoding import decode_controls, decode_feature_values, decode_instances, decode_labels
from topics.codecs.encoding import (
    encode_controls,
    encode_corrections,
    encode_feature_values,
    encode_instances,
    encode_labels,
)
from topics.codecs.limits import Limits
from topics.codecs.outputs import (
    decode_audit,
    decode_drift_alerts,
    decode_evaluations,
    decode_feature_requests,
    decode_label_requests,
    decode_model_events,
    decode_predictions,
    encode_audit,
    encode_drift_alerts,
    encode_evaluations,
    encode_feature_requests,
    encode_label_requests,
    encode_model_events,
    encode_predictions,
    unwritable_predictions,
)

__all__ = [
    "CONTENT_TYPES",
    "Limits",
    "decode_audit",
    "decode_controls",
    "decode_drift_alerts",
    "decode_evaluations",
    "decode_feature_requests",
    "decode_feature_values",
    "decode_instances",
    "decode_label_requests",
    "decode_labels",
    "decode_model_events",
    "decode_predictions",
    "encode_audit",
    "encode_controls",
    "encode_corrections",
    "encode_drift_alerts",
    "encode_evaluations",
    "encode_feature_requests",
    "encode_feature_values",
    "encode_instances",
    "encode_label_requests",
    "encode_labels",
    "encode_model_events",
    "encode_predictions",
    "unwritable_predictions",
]
