"""Encoding of inputs, for their producers: replay, oracle, tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from topics.codecs.codec import codec
from topics.codecs.json.lines import write_documents
from topics.codecs.json.writer import write_controls
from topics.columns.records import Command, Features, Floats, Format
from topics.errors import CodecError


def encode_instances(
    features: Features,
    *,
    format: Format = "json",
    ids: Sequence[str] | None = None,
    labels: Sequence[str | None] | None = None,
    weights: Floats | None = None,
) -> list[bytes]:
    """Return the values of n instance records; as arrow the value of one block of n rows.

    `labels` are class names, None for a row without a label.
    """
    n = len(features)
    _same_length(n, ids=ids, labels=labels, weights=weights)
    return codec(format).write_instances(features, ids, labels, weights) if n else []


def encode_labels(
    ids: Sequence[str],
    labels: Sequence[str | None],
    *,
    format: Format = "json",
    weights: Floats | None = None,
    annotators: Sequence[str | None] | None = None,
    features: Features | None = None,
) -> list[bytes]:
    """Return the values of n label records; as arrow the value of one block of n rows.

    `labels` are class names, None for a declined label.
    """
    n = len(ids)
    _same_length(n, labels=labels, weights=weights, annotators=annotators, features=features)
    return codec(format).write_labels(ids, labels, weights, annotators, features) if n else []


def encode_corrections(
    ids: Sequence[str],
    labels: Sequence[str | None],
    annotators: Sequence[str],
    weights: Sequence[float],
    features: Sequence[Mapping[str, float | str]],
) -> list[bytes]:
    """Return the values of n label records that correct earlier labels (JSON); None: declined.

    A row with features is an example to learn, with an id of its own; a row without them corrects the label
    of its instance.
    """
    documents: list[dict[str, Any]] = []
    for instance_id, label, annotator, weight, cells in zip(
        ids, labels, annotators, weights, features, strict=True
    ):
        body: dict[str, Any] = {"id": instance_id, "label": label, "annotator": annotator}
        if label is None:
            body = {"id": instance_id, "declined": True, "annotator": annotator}
        if weight != 1.0:
            body["weight"] = weight
        documents.append(body | ({"features": cells} if cells else {"corrects": True}))
    return write_documents(documents)


def encode_feature_values(
    ids: Sequence[str],
    values: Sequence[Mapping[str, float | str]],
    unavailable: Sequence[Mapping[str, str | None]] | None = None,
    finish: Sequence[bool] | None = None,
) -> list[bytes]:
    """Return the values of n records with requested features (JSON)."""
    n = len(ids)
    _same_length(n, values=values, unavailable=unavailable, finish=finish)
    documents: list[dict[str, Any]] = []
    for row in range(n):
        body: dict[str, Any] = {"id": ids[row]}
        if values[row]:
            body["features"] = values[row]
        if unavailable is not None and unavailable[row]:
            body["unavailable"] = unavailable[row]
        if finish is not None and finish[row]:
            body["finish"] = True
        documents.append(body)
    return write_documents(documents)


def encode_controls(controls: Iterable[tuple[Command, Mapping[str, Any]]]) -> list[bytes]:
    """Return the values of control records, each from a command and its other members."""
    return write_controls(controls)


def _same_length(n: int, **columns: Any) -> None:
    for name, column in columns.items():
        if column is not None and len(column) != n:
            message = f"{name} has {len(column)} rows; it must have {n}, one for each record"
            raise CodecError(message)
