"""Decoding: records of topics as requests, labels and names of classes."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Message

from streamapp.web.cards import CELLS_MAX, TEXT_MAX, Cell, Label, Request
from topics.codecs import decode_controls, decode_label_requests, decode_labels
from topics.records import Features, Headers, RawRecords


def requests_of(messages: Sequence[Message]) -> list[Request]:
    """Return the requests among records of one partition of `label-requests`; what is none is left out."""
    usable = [(message, key) for message in messages if (key := _key(message)) is not None]
    found = decode_label_requests([message.value() or b"" for message, _ in usable])
    features: dict[int, dict[str, Cell]] = {}
    for together in found.features:
        for place, row in enumerate(together.rows.tolist()):
            features[row] = _cells(together, place)
    assert found.record is not None
    requests = []
    for row, record in enumerate(found.record.tolist()):
        message, key = usable[record]
        cells = features.get(row, {})
        requests.append(
            Request(
                partition=message.partition() or 0,
                key=key,
                request_id=found.request_ids[row],
                instance_id=found.instance_ids[row],
                asked_ms=message.timestamp()[1],
                expires_ms=int(found.expires_ms[row]),
                utility=float(found.utility[row]),
                prediction=found.predictions[row],
                strategy=found.strategies[row],
                features=dict(list(cells.items())[:CELLS_MAX]),
                left_out=max(0, len(cells) - CELLS_MAX),
            )
        )
    return requests


def labels_of(messages: Sequence[Message]) -> list[Label]:
    """Return the labels among records of one partition of `labels`; the worker dead-letters what is none."""
    found = decode_labels(_raw(messages))
    return [
        Label(
            found.keys[found.key[row]],
            found.ids[row],
            found.label_values[code] if code >= 0 else None,
            found.annotators[row],
            messages[found.record[row]].timestamp()[1],
        )
        for row, code in enumerate(found.label.tolist())
    ]


def classes_of(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return (model key, class) of every class that a control names in a schema."""
    named: list[tuple[str, str]] = []
    for control in decode_controls(_raw(messages)).items:
        schema = control.body.get("schema")
        classes = schema.get("classes") if isinstance(schema, dict) else None
        for name in classes if isinstance(classes, list) else ():
            if isinstance(name, bool):
                named.append((control.key, str(name).lower()))
            elif isinstance(name, int) or (isinstance(name, str) and name):
                named.append((control.key, str(name)))
    return named


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
    found = message.headers() or ()
    pairs = found.items() if isinstance(found, dict) else found
    return [(name, _bytes(value)) for name, value in pairs]


def _bytes(given: str | bytes | None) -> bytes | None:
    return given.encode() if isinstance(given, str) else given


def _key(message: Message) -> str | None:
    key = _bytes(message.key())
    try:
        return key.decode() if key else None
    except UnicodeDecodeError:
        return None


def _cells(features: Features, place: int) -> dict[str, Cell]:
    """Return the features of one row by name; by position they are f0, f1, …, as models call them."""
    values = features.values[place].tolist()
    names = features.names or tuple(f"f{column}" for column in range(len(values)))
    cells: dict[str, Cell] = {}
    for column, (name, value) in enumerate(zip(names, values, strict=True)):
        text = features.strings[column][place] if column in features.strings else None
        cells[name] = text[:TEXT_MAX] if text is not None else None if value != value else value
    return cells
