"""Encoding of answers: a kernel writes all of them into one buffer, byte for byte as the codecs do.

The codecs of `topics` write the cases that the kernel does not support: blocks, answers with bought features,
and packed names that JSON would escape. The texts around ids and numbers are prepared once for each list of
classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import Final

import numpy as np
import orjson

from topics.codecs import encode_predictions
from topics.codecs.compiled.answers import (
    FIXED_BYTES,
    STEP_BYTES,
    STEP_TEXTS,
    TOO_LONG,
    write_json,
    write_offset_ids,
    write_packed,
    write_record_ids,
)
from topics.codecs.json.predictions import UNTRAINED
from topics.codecs.offset_ids import OffsetIds, RecordIds
from topics.codecs.packed.layout import HAS_EXPLANATION, MAGIC, PREDICTION, VERSION
from topics.codecs.packed.predictions import class_names, shares
from topics.columns.members import given
from topics.columns.records import Format, Ints64, Predictions
from topics.columns.spans import Bytes, Spans, Texts
from topics.columns.texts import HAS_ESCAPES, NUMBER_BYTES, write_strings

_HEAD: Final = Struct("<2sBBBBHIB")  # the twelfth byte is followed by a flag, for the kernel
_FLOAT32_BYTES: Final = 4
_BACKSLASH: Final = 92
_NOTHING: Final[Bytes] = np.empty(0, dtype=np.uint8)


def encode_answers(predictions: Predictions, form: Format) -> Spans:
    """Return the result of `topics.codecs.encode_predictions`, but faster."""
    written = None
    is_known = all(member.compiled for member, _ in given(predictions))
    if len(predictions) and is_known and predictions.version.min() >= 0:
        if form == "json":
            written = _json(predictions)
        elif form == "packed":
            written = _packed(predictions)
    return Spans.of(encode_predictions(predictions, form)) if written is None else written


def _json(predictions: Predictions) -> Spans:
    n, texts = len(predictions), _texts(predictions.classes)
    ids, paths = json_ids(predictions.ids), _paths(predictions)
    out = np.empty(n * texts.most_bytes + len(ids) + _room(paths, n), dtype=np.uint8)
    starts = np.empty(n + 1, dtype=np.int64)
    probability = np.ascontiguousarray(predictions.probability[:, : len(predictions.classes)])
    size = write_json(
        ids,
        paths,
        np.ascontiguousarray(predictions.prediction),
        probability,
        np.ascontiguousarray(predictions.version),
        texts.texts,
        texts.starts,
        STEP_TEXTS,
        out,
        starts,
    )
    return Spans.adjacent(out[:size].tobytes(), starts)


def _packed(predictions: Predictions) -> Spans | None:
    """Return the encoded answers; None if the codec has to write them."""
    n, count = len(predictions), len(predictions.classes)
    ids, paths = json_ids(predictions.ids), _paths(predictions)
    if _BACKSLASH in ids or _BACKSLASH in paths:  # escapes
        return None
    values = np.ascontiguousarray(shares(predictions))
    names = np.frombuffer(bytearray(class_names(predictions.classes)), dtype=np.uint8)
    head = _HEAD.pack(MAGIC, VERSION, PREDICTION, _FLOAT32_BYTES, 0, 0, count, HAS_EXPLANATION)
    room = n * (FIXED_BYTES + _FLOAT32_BYTES * count + len(names)) + len(ids) + len(paths)
    out, starts = np.empty(room, dtype=np.uint8), np.empty(n + 1, dtype=np.int64)
    size = write_packed(
        ids,
        paths,
        np.frombuffer(bytearray(head), dtype=np.uint8),
        np.ascontiguousarray(predictions.prediction),
        np.ascontiguousarray(predictions.version),
        values.view(np.uint8).reshape(n, _FLOAT32_BYTES * count),
        names,
        out,
        starts,
    )
    return None if size == TOO_LONG else Spans.adjacent(out[:size].tobytes(), starts)


def json_ids(ids: Sequence[str]) -> Bytes:
    """Return ids (at least one) as a JSON array of strings."""
    if isinstance(ids, Texts):
        spans = ids.spans
        out = np.empty(spans.total + 3 * len(spans) + 1, dtype=np.uint8)
        starts, lengths = map(np.ascontiguousarray, (spans.starts, spans.lengths))
        size = write_strings(spans.bytes, starts, lengths, out)
        if size != HAS_ESCAPES:
            return out[:size]
    if isinstance(ids, RecordIds) and min(ids.partitions.min(), ids.offsets.min()) >= 0:
        text = np.empty(len(ids) * (ids.most_bytes + len('"",')) + 1, dtype=np.uint8)
        return text[: write_record_ids(ids.partitions, np.ascontiguousarray(ids.offsets), text)]
    if not isinstance(ids, OffsetIds) or ids.offsets.min() < 0:
        return json_array(orjson.dumps(ids if isinstance(ids, list) else list(ids)))
    head = np.frombuffer(bytearray(ids.head.encode()), dtype=np.uint8)
    text = np.empty(len(ids) * (ids.most_bytes + len('"",')) + 1, dtype=np.uint8)
    return text[: write_offset_ids(head, ids.offsets, text)]


def _paths(predictions: Predictions) -> Bytes:
    """Return the explanations as a JSON array; an empty one if no row has any."""
    if predictions.explanation is None:
        return _NOTHING
    return json_array(orjson.dumps(predictions.explanation))


def json_array(text: bytes) -> Bytes:
    """Return JSON text as a writable array, as kernels take it."""
    return np.frombuffer(bytearray(text), dtype=np.uint8)


def _room(paths: Bytes, n: int) -> int:
    """Return an upper bound of the bytes that explanations take."""
    return len(paths) + n * len('"explanation":') if len(paths) else 0


@dataclass(frozen=True, slots=True, eq=False)
class _Texts:
    """The fixed texts of an answer between id, probabilities and version, for models with these classes."""

    texts: Bytes
    starts: Ints64
    most_bytes: int  # bytes of an answer without id and explanation

    @classmethod
    def of(cls, classes: tuple[str, ...]) -> _Texts:
        names = [orjson.dumps(name) for name in classes]
        answers = [b'","label":%s,"probabilities":{' % name for name in (*names, b"null")]
        members = [b"%s%s:" % (b"," if number else b"", name) for number, name in enumerate(names)]
        ending = b'},"version":'
        texts = [*answers, *members, ending, b'{"id":"', b'{"explanation":', b',"id":"', UNTRAINED]
        starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        fixed = (
            len('{"id":"') + max(map(len, answers)) + len(ending) + NUMBER_BYTES + len(UNTRAINED) + len("}")
        )
        most = fixed + sum(map(len, members)) + STEP_BYTES * (len(classes) + 1)
        return cls(np.frombuffer(bytearray().join(texts), dtype=np.uint8), starts, most)


_texts = lru_cache(maxsize=256)(_Texts.of)
