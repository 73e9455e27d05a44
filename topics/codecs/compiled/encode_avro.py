"""Encoding of answers and label requests in Avro by a kernel, and of everything else by fastavro.

The programs of the kernel follow the fields of the schemas in topics/schemas, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import orjson

from topics.codecs import encode_label_requests, encode_predictions
from topics.codecs.avro.compiled.row_writing import (
    CELL,
    MAYBE_NUMBER,
    MAYBE_TEXT,
    MAYBE_WHOLE,
    NUMBER,
    TEXT,
    WHOLE,
    RowProgram,
    Rows,
    placed,
    text,
    whole,
)
from topics.codecs.avro.output_schemas import Output
from topics.codecs.avro.output_values import avro_values
from topics.codecs.compiled.text_columns import text_spans
from topics.codecs.frames.wire_format import framed
from topics.columns.dictionary import Dictionary
from topics.columns.members import given, members
from topics.columns.records import Floats, LabelRequests, Predictions
from topics.columns.spans import Spans

_NULL, _SECOND = whole(0), whole(1)
"""Branches of unions."""
_FALSE, _TRUE = b"\x00", b"\x01"
_MAP, _ARRAY = whole(1), whole(2)
"""Branches of the features."""
_END_OF_ITEMS: Final = whole(0)
COMPILED: Final = ("explanation", "challenger")
"""Columns of optional members of an answer that the kernel writes."""
_N_NULLS: Final = 5
"""Optional members of a label request, all null for the kernel."""


def avro_answers(predictions: Predictions, schema_id: int) -> Spans:
    """Return n answers, each a frame with the id of its schema, and a value."""
    if any(name not in COMPILED for name in _given_columns(predictions)):
        return Spans.of([framed(schema_id, body) for body in _other_answers(predictions)])
    n, count = len(predictions), len(predictions.classes)
    optional = [cells for cells in (predictions.explanation, predictions.challenger) if cells is not None]
    columns, texts, size = placed([text_spans(predictions.ids), *(_maybe_texts(cells) for cells in optional)])
    words = np.empty((n, count + 4 + len(optional)), dtype=np.int64)
    words[:, 0] = columns[0]
    words[:, 1] = predictions.prediction
    words[:, 2 : 2 + count] = _shares(predictions).view(np.int64)
    words[:, 2 + count] = predictions.version
    words[:, 3 + count] = predictions.version == 0
    for number, column in enumerate(columns[1:]):
        words[:, 4 + count + number] = column
    has_path, has_challenger = predictions.explanation is not None, predictions.challenger is not None
    program = _answers(predictions.classes, schema_id, has_path=has_path, has_challenger=has_challenger)
    return program.write(words, texts, size)


def _shares(predictions: Predictions) -> Floats:
    """Return float64[n, classes], probabilities from 0 to 1; NaN, of an unknown class, is 0."""
    known = predictions.probability[:, : len(predictions.classes)]
    return np.ascontiguousarray(np.fmin(np.fmax(known, 0.0), 1.0))


@lru_cache(maxsize=256)
def _answers(classes: tuple[str, ...], schema_id: int, *, has_path: bool, has_challenger: bool) -> RowProgram:
    """Return the program of answers of models with these classes; optional texts that all rows lack are
    constant.
    """
    rows = Rows()
    rows.constant(framed(schema_id, b""))
    rows.cell(TEXT)
    rows.choice([*(_SECOND + text(name) for name in classes), _NULL])
    if classes:
        rows.constant(whole(len(classes)))
    for name in classes:
        rows.constant(text(name))
        rows.cell(NUMBER)
    rows.constant(_END_OF_ITEMS)
    rows.cell(WHOLE)
    rows.choice([_FALSE, _TRUE])
    _optional_text(rows, is_there=has_path)
    rows.constant(_NULL)  # acquired
    _optional_text(rows, is_there=has_challenger)
    rows.constant(_NULL)  # raw_probabilities
    rows.constant(_NULL)  # set
    return rows.program()


def _optional_text(rows: Rows, *, is_there: bool) -> None:
    if is_there:
        rows.cell(MAYBE_TEXT)
    else:
        rows.constant(_NULL)


def _given_columns(predictions: Predictions) -> list[str]:
    """Return the columns of optional members that some rows have."""
    return [column for column in members(Predictions) if getattr(predictions, column) is not None]


def _other_answers(predictions: Predictions) -> list[bytes]:
    """Return answers with members that the kernel does not write, without frames."""
    documents = [orjson.loads(value) for value in encode_predictions(predictions)]
    for document, row in zip(documents, _shares(predictions).tolist(), strict=True):
        document["probabilities"] = dict(zip(predictions.classes, row, strict=True))
    for document, raw in zip(documents, predictions.raw_probabilities or (), strict=False):
        document["raw_probabilities"] = raw
    return avro_values("prediction", map(orjson.dumps, documents))


def _maybe_texts(cells: Sequence[str | None]) -> Spans:
    """Return texts, null where a row has none."""
    return Spans.of([None if cell is None else cell.encode() for cell in cells])


def avro_requests(requests: LabelRequests, schema_id: int) -> Spans:
    """Return n label requests, each a frame with the id of its schema, and a value."""
    n = len(requests)
    together = len(requests.features) == 1 and len(requests.features[0]) == n
    names = requests.features[0].names if together else None
    is_odd = names is not None and len(set(names)) < len(names)
    if any(given(requests)) or not together or is_odd:
        return avro_reports("label-request", schema_id, encode_label_requests(requests))
    (features,) = requests.features
    predictions, strategies = Dictionary.of(requests.predictions), Dictionary.of(requests.strategies)
    strings = tuple(sorted(features.strings))
    texts_of = [
        text_spans(requests.request_ids),
        text_spans(requests.instance_ids),
        *(_maybe_texts(features.strings[column]) for column in strings),
    ]
    (request_words, instance_words, *string_words), texts, size = placed(texts_of)
    width = features.values.shape[1]
    program = _requests(names, width, strings, tuple(predictions.values), tuple(strategies.values), schema_id)
    words = np.empty((n, program.columns), dtype=np.int64)
    words[:, 0], words[:, 1] = request_words, instance_words
    at, own = 2, np.ascontiguousarray(features.values).view(np.int64)
    for column in range(width):
        if column in features.strings:
            words[:, at] = string_words[strings.index(column)]
            at += 1
        words[:, at] = own[:, column]
        at += 1
    words[:, at] = predictions.codes
    words[:, at + 1] = strategies.codes
    words[:, at + 2] = np.ascontiguousarray(requests.utility).view(np.int64)
    words[:, at + 3] = requests.expires_ms
    return program.write(words, texts, size)


@lru_cache(maxsize=64)
def _requests(
    names: tuple[str, ...] | None,
    width: int,
    strings: tuple[int, ...],
    classes: tuple[str | None, ...],
    strategies: tuple[str, ...],
    schema_id: int,
) -> RowProgram:
    """Return the program of requests whose features have these names, and strings in these columns."""
    rows = Rows()
    rows.constant(framed(schema_id, b""))
    rows.cell(TEXT)
    rows.cell(TEXT)
    rows.constant(_ARRAY if names is None else _MAP)
    if width:
        rows.constant(whole(width))
    for column in range(width):
        if names is not None:
            rows.constant(text(names[column]))
        rows.cell(CELL if column in strings else MAYBE_NUMBER)
    rows.constant(_END_OF_ITEMS)
    rows.choice([_NULL if name is None else _SECOND + text(name) for name in classes])
    rows.choice([text(name) for name in strategies])
    rows.cell(MAYBE_NUMBER)
    rows.cell(MAYBE_WHOLE)
    rows.constant(_NULL * _N_NULLS)
    return rows.program()


def avro_reports(output: Output, schema_id: int, texts: Iterable[bytes]) -> Spans:
    """Return reports that are JSON, each as a frame with the id of its schema, and a value."""
    return Spans.of([framed(schema_id, body) for body in avro_values(output, texts)])
