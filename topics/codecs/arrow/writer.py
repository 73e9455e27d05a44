"""Columns of instances and labels to one block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from topics.codecs.arrow.layout import INSTANCE_ROLES, LABEL_ROLES
from topics.columns.records import Features, Floats
from topics.errors import CodecError


def stream(columns: dict[str, pa.Array]) -> bytes:
    """Return an Arrow IPC stream with one record batch."""
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def write_instances(
    features: Features,
    ids: Sequence[str] | None,
    labels: Sequence[str | None] | None,
    weights: Floats | None,
) -> list[bytes]:
    """Return all rows as one block."""
    columns = _features(features, INSTANCE_ROLES)
    if ids is not None:
        columns["id"] = pa.array(ids, pa.string())
    if labels is not None:
        columns["label"] = pa.array(labels, pa.string()).dictionary_encode()
    if weights is not None:
        columns["weight"] = pa.array(weights)
    return [stream(columns)]


def write_labels(
    ids: Sequence[str],
    labels: Sequence[str | None],
    weights: Floats | None,
    annotators: Sequence[str | None] | None,
    features: Features | None,
) -> list[bytes]:
    """Return all rows as one block; a null label means declined."""
    columns: dict[str, Any] = {} if features is None else _features(features, LABEL_ROLES)
    columns["id"] = pa.array(ids, pa.string())
    columns["label"] = pa.array(labels, pa.string()).dictionary_encode()
    if None in labels:
        columns["declined"] = pa.array([label is None for label in labels], pa.bool_())
    if weights is not None:
        columns["weight"] = pa.array(weights)
    if annotators is not None:
        columns["annotator"] = pa.array(annotators, pa.string()).dictionary_encode()
    return [stream(columns)]


def _features(features: Features, roles: frozenset[str]) -> dict[str, Any]:
    if features.names is None:
        message = "features=by position must have names to be written as arrow; use json or packed"
        raise CodecError(message)
    taken = roles.intersection(features.names)
    if taken:
        message = f"feature {min(taken)!r} must have another name: arrow uses this name for a column"
        raise CodecError(message)
    columns: dict[str, Any] = {}
    for number, name in enumerate(features.names):
        texts = features.strings.get(number)
        if texts is None:
            columns[name] = pa.array(features.values[:, number], from_pandas=True)  # NaN becomes null
        else:
            columns[name] = pa.array(texts, pa.string()).dictionary_encode()
    return columns
