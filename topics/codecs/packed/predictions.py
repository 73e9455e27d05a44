"""Predictions to packed records, and packed records to predictions."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct, unpack_from
from typing import Any

import numpy as np
import numpy.typing as npt

from topics.codecs.flaws import Flaw
from topics.codecs.offset_ids import OffsetIds
from topics.codecs.packed.layout import (
    HAS_EXPLANATION,
    HAS_RAW,
    HAS_SET,
    HEADER,
    NAME_MAX_BYTES,
    PREDICTION,
    read_header,
)
from topics.codecs.packed.writer import fixed_part, glue, set_ids
from topics.codecs.prediction_row import NO_MEMBERS, PredictionRow
from topics.columns.records import Predictions
from topics.columns.spans import Texts

_LENGTH = Struct("<H")
_VERSION = Struct("<q")
UTF8_BYTES = 4  # bytes of a character, at most

Floats32 = npt.NDArray[np.float32]


def write_predictions(predictions: Predictions) -> list[bytes]:
    """Return one record for each row, probabilities as float32."""
    count = len(predictions.classes)
    part = fixed_part(len(predictions), PREDICTION, 4, count, "<i8")
    part["label"] = predictions.prediction
    part["eighth"] = predictions.version
    part["values"] = shares(predictions)
    ids = set_ids(part, predictions.ids)
    names = class_names(predictions.classes)
    tails = [name + names for name in ids]
    classes = predictions.classes
    texts: list[tuple[list[Any] | None, int, Callable[[Any], bytes]]] = [
        (predictions.raw_probabilities, HAS_RAW, lambda shares: _raw_bytes(shares, classes)),
        (predictions.sets, HAS_SET, lambda members: _set_bytes(members, classes)),
        (predictions.explanation, HAS_EXPLANATION, str.encode),
    ]
    for cells, flag, write in texts:
        if cells is not None:
            part["flags"][[cell is not None for cell in cells]] |= flag
            more = [b"" if cell is None else write(cell) for cell in cells]
            tails = [tail + after for tail, after in zip(tails, more, strict=True)]
    return glue(part, tails)


def _raw_bytes(shares: dict[str, float], classes: tuple[str, ...]) -> bytes:
    """Return the raw probabilities of all classes, float32[K]."""
    return np.array([shares.get(name, 0.0) for name in classes], dtype="<f4").tobytes()


def _set_bytes(names: list[str], classes: tuple[str, ...]) -> bytes:
    """Return a bit for each class."""
    return np.packbits([name in names for name in classes], bitorder="little").tobytes()


def shares(predictions: Predictions) -> Floats32:
    """Return the probabilities, float32[n, K], as in JSON: between 0 and 1, and 0 for values that are not
    numbers.

    They are clipped before the conversion: a number beyond float32 would become infinite.
    """
    given = predictions.probability[:, : len(predictions.classes)]
    narrow: Floats32 = np.clip(np.nan_to_num(given), 0.0, 1.0).astype("<f4")
    return narrow


def unwritable(predictions: Predictions) -> dict[int, str]:
    """Return the rows with names that are too long for this layout, each with the reason."""
    longest = _longest(predictions.classes)
    if longest > NAME_MAX_BYTES:
        why = f"a class name of {longest} bytes must have at most {NAME_MAX_BYTES} in packed"
        return dict.fromkeys(range(len(predictions)), why)
    ids = predictions.ids
    longest = ids.most_bytes if isinstance(ids, OffsetIds | Texts) else max(map(len, ids), default=0)
    if longest * UTF8_BYTES <= NAME_MAX_BYTES:
        return {}
    sizes = [len(name.encode()) for name in predictions.ids]
    return {
        row: f"an id of {size} bytes must have at most {NAME_MAX_BYTES} in packed"
        for row, size in enumerate(sizes)
        if size > NAME_MAX_BYTES
    }


@lru_cache(maxsize=256)
def _longest(classes: tuple[str, ...]) -> int:
    return max((len(name.encode()) for name in classes), default=0)


@lru_cache(maxsize=256)
def class_names(classes: tuple[str, ...]) -> bytes:
    """Return the class names, each after its length."""
    return b"".join(_LENGTH.pack(len(name.encode())) + name.encode() for name in classes)


def read_predictions(value: bytes) -> list[PredictionRow]:
    """Return the row of one record; ValueError if it is not a prediction."""
    header = read_header(value, PREDICTION)
    if isinstance(header, Flaw):
        raise ValueError(header.detail)
    (version,) = _VERSION.unpack_from(value, HEADER.size)
    letter = "d" if header.value_bytes == 8 else "f"
    probabilities = unpack_from(f"<{header.count}{letter}", value, header.values_at)
    at = header.texts_at + header.id_bytes
    name = value[header.texts_at : at].decode()
    classes, size = _class_names(value[at:], header.count)
    members: dict[str, Any] = {}
    at += size
    if header.flags & HAS_RAW:
        shares_of_row = unpack_from(f"<{header.count}f", value, at)
        members["raw_probabilities"] = dict(zip(classes, shares_of_row, strict=True))
        at += 4 * header.count
    if header.flags & HAS_SET:
        bytes_of_row = np.frombuffer(value, dtype=np.uint8, count=-(-header.count // 8), offset=at)
        inside = np.unpackbits(bytes_of_row, count=header.count, bitorder="little")
        members["sets"] = [name for name, bit in zip(classes, inside.tolist(), strict=True) if bit]
        at += len(bytes_of_row)
    path = value[at:].decode()
    if path and not header.flags & HAS_EXPLANATION:
        message = f"{len(value)} bytes; the parts of the header end at {at}"
        raise ValueError(message)
    label = classes[header.label] if 0 <= header.label < len(classes) else None
    if path:
        members["explanation"] = path
    shares_of_classes = dict(zip(classes, probabilities, strict=True))
    return [PredictionRow(name, label, shares_of_classes, version, members or NO_MEMBERS)]


@lru_cache(maxsize=256)
def _class_names(blob: bytes, count: int) -> tuple[list[str], int]:
    """Return the class names at the start of the blob, and their bytes; most records share them."""
    names, at = [], 0
    for _ in range(count):
        (size,) = _LENGTH.unpack_from(blob, at)
        at += _LENGTH.size + size
        if at > len(blob):
            message = "a class name goes beyond the end of the record"
            raise ValueError(message)
        names.append(blob[at - size : at].decode())
    return names, at
