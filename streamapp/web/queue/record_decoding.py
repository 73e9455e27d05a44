"""Decoding: records of topics as requests, labels, feature values, audit entries and declared names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Message

from streamapp.web.queue.cards import (
    CELLS_MAX,
    RULES_MAX,
    TEXT_MAX,
    WANTED_MAX,
    Attribute,
    Cell,
    Given,
    Label,
    Range,
    Request,
    Values,
)
from streamapp.web.queue.closed_classes import ClassControl, class_control
from topics.codecs import (
    decode_audit,
    decode_controls,
    decode_feature_requests,
    decode_feature_values,
    decode_label_requests,
    decode_labels,
)
from topics.codecs.avro.output_reader import AS_WRITTEN, OutputReader
from topics.columns.records import AuditEntry, FeatureRequest, Features, Headers, RawRecords


def requests_of(messages: Sequence[Message], outputs: OutputReader = AS_WRITTEN) -> list[Request]:
    """Return the requests among records of one partition of `label-requests`; other records are left out."""
    usable = [(message, key) for message in messages if (key := _key(message)) is not None]
    decoded = decode_label_requests(outputs.texts([message.value() or b"" for message, _ in usable]))
    features: dict[int, dict[str, Cell]] = {}
    for together in decoded.features:
        for place, row in enumerate(together.rows.tolist()):
            features[row] = _cells(together, place)
    assert decoded.record is not None
    requests = []
    for row, record in enumerate(decoded.record.tolist()):
        message, key = usable[record]
        cells = features.get(row, {})
        requests.append(
            Request(
                partition=message.partition() or 0,
                key=key,
                request_id=decoded.request_ids[row],
                instance_id=decoded.instance_ids[row],
                asked_ms=message.timestamp()[1],
                expires_ms=int(decoded.expires_ms[row]),
                utility=float(decoded.utility[row]),
                prediction=decoded.predictions[row],
                strategy=decoded.strategies[row],
                features=dict(list(cells.items())[:CELLS_MAX]),
                left_out=max(0, len(cells) - CELLS_MAX),
                rules=_cut(decoded.explanations[row] if decoded.explanations else None),
                shares=(decoded.probabilities[row] if decoded.probabilities else None) or {},
                seen={name: Range(*seen) for name, seen in decoded.ranges[row].items()}
                if decoded.ranges
                else {},
                reason=(decoded.reasons[row] or "")[:TEXT_MAX] or None if decoded.reasons else None,
            )
        )
    return requests


def feature_requests_of(messages: Sequence[Message]) -> list[Request]:
    """Return the requests among records of `feature-requests`, without requests for too many features."""
    usable = [(message, key) for message in messages if (key := _key(message)) is not None]
    requests = []
    for (message, key), decoded in zip(
        usable, decode_feature_requests([message.value() or b"" for message, _ in usable]), strict=True
    ):
        if not isinstance(decoded, FeatureRequest) or not 0 < len(decoded.features) <= WANTED_MAX:
            continue
        if not all(isinstance(name, str) and 0 < len(name) <= TEXT_MAX for name in decoded.features):
            continue
        cells: dict[str, Cell] = {
            name: cell[:TEXT_MAX] if isinstance(cell, str) else float(cell)
            for name, cell in decoded.known.items()
            if isinstance(cell, (str, int, float))
        }
        requests.append(
            Request(
                partition=message.partition() or 0,
                key=key,
                request_id=decoded.request_id,
                instance_id=decoded.instance_id,
                asked_ms=message.timestamp()[1],
                expires_ms=decoded.expires_ms,
                utility=float(decoded.utility),
                prediction=None,
                strategy="acquisition",
                features=dict(list(cells.items())[:CELLS_MAX]),
                left_out=max(0, len(cells) - CELLS_MAX),
                wanted=tuple(dict.fromkeys(decoded.features)),
                cost=float(decoded.cost),
            )
        )
    return requests


def audit_entries_of(messages: Sequence[Message]) -> list[AuditEntry]:
    """Return the entries among records of one partition of `audit`; other records are left out."""
    decoded = decode_audit([message.value() or b"" for message in messages])
    return [entry for entry in decoded if isinstance(entry, AuditEntry)]


def values_of(messages: Sequence[Message], outputs: OutputReader = AS_WRITTEN) -> list[Values]:
    """Return the values in records of one partition of `feature-values`; bad records become dead letters."""
    decoded = decode_feature_values(outputs.inputs(_raw(messages)))
    return [
        Values(
            decoded.keys[decoded.key[row]],
            decoded.ids[row],
            Given(decoded.values[row], decoded.unavailable[row], decoded.finish[row]),
            messages[decoded.record[row]].timestamp()[1],
        )
        for row in range(len(decoded))
    ]


def labels_of(messages: Sequence[Message], outputs: OutputReader = AS_WRITTEN) -> list[Label]:
    """Return the labels among records of one partition of `labels`; the worker dead-letters bad records."""
    decoded = decode_labels(outputs.inputs(_raw(messages)))
    return [
        Label(
            decoded.keys[decoded.key[row]],
            decoded.ids[row],
            decoded.label_values[code] if code >= 0 else None,
            decoded.annotators[row],
            messages[decoded.record[row]].timestamp()[1],
        )
        for row, code in enumerate(decoded.label.tolist())
    ]


def declared_in(
    messages: Sequence[Message], outputs: OutputReader = AS_WRITTEN
) -> tuple[list[tuple[str, str]], list[Attribute]]:
    """Return (model key, class) of every class, and every feature, that a control declares in a schema."""
    classes: list[tuple[str, str]] = []
    attributes: list[Attribute] = []
    for control in decode_controls(outputs.inputs(_raw(messages))).items:
        schema = control.body.get("schema")
        if not isinstance(schema, dict):
            continue
        names, declared = schema.get("classes"), schema.get("attributes")
        for name in names if isinstance(names, list) else ():
            if isinstance(name, bool):
                classes.append((control.key, str(name).lower()))
            elif isinstance(name, int) or (isinstance(name, str) and name):
                classes.append((control.key, str(name)))
        for attribute in declared if isinstance(declared, list) else ():
            if isinstance(attribute, dict) and isinstance(attribute.get("name"), str):
                attributes.append(_attribute(control.key, attribute))
    return classes, attributes


def class_controls_of(messages: Sequence[Message], outputs: OutputReader = AS_WRITTEN) -> list[ClassControl]:
    """Return the effects of one partition's controls on the classes that models allow, in their order."""
    controls = [
        class_control(control, messages[control.record].timestamp()[1])
        for control in decode_controls(outputs.inputs(_raw(messages))).items
    ]
    return [control for control in controls if control is not None]


def _attribute(key: str, declared: dict[str, Any]) -> Attribute:
    """Return the declaration of a feature in a control, without a check: the worker checks it."""
    values, limits = declared.get("values"), declared.get("range")
    low, high = None, None
    if (
        isinstance(limits, list)
        and len(limits) == 2
        and all(isinstance(bound, (int, float)) for bound in limits)
    ):
        low, high = float(limits[0]), float(limits[1])
    return Attribute(
        key,
        declared["name"],
        "nominal" if declared.get("kind") == "nominal" else "numeric",
        tuple(name[:TEXT_MAX] for name in values if isinstance(name, str))
        if isinstance(values, list)
        else (),
        declared.get("open") is True,
        low,
        high,
    )


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= RULES_MAX else f"{text[:RULES_MAX]} …"


def _raw(messages: Sequence[Message]) -> RawRecords:
    return RawRecords(
        messages[0].topic() or "",
        messages[0].partition() or 0,
        [message.offset() or 0 for message in messages],
        [message.timestamp()[1] for message in messages],
        [_bytes(message.key()) for message in messages],
        [_bytes(message.value()) for message in messages],
        [_headers(message) for message in messages],
    )


def _headers(message: Message) -> Headers:
    headers = message.headers() or ()
    pairs = headers.items() if isinstance(headers, dict) else headers
    return [(name, _bytes(value)) for name, value in pairs]


def _bytes(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def _key(message: Message) -> str | None:
    key = _bytes(message.key())
    try:
        return key.decode() if key else None
    except UnicodeDecodeError:
        return None


def _cells(features: Features, place: int) -> dict[str, Cell]:
    """Return the features of one row by name; features by position are named f0, f1, … as in models."""
    values = features.values[place].tolist()
    names = features.names or tuple(f"f{column}" for column in range(len(values)))
    cells: dict[str, Cell] = {}
    for column, (name, value) in enumerate(zip(names, values, strict=True)):
        text = features.strings[column][place] if column in features.strings else None
        cells[name] = text[:TEXT_MAX] if text is not None else None if value != value else value
    return cells
