"""Predictions to packed records, and packed records to predictions."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, unpack_from

import numpy as np
import numpy.typing as npt

from topics.codecs.flaws import Flaw
from topics.codecs.offset_ids import OffsetIds
from topics.codecs.packed.layout import HAS_EXPLANATION, HEADER, NAME_MAX_BYTES, PREDICTION, read_header
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
    if predictions.explanation is None:
        return glue(part, [name + names for name in ids])
    explained = np.array([path is not None for path in predictions.explanation])
    part["flags"][explained] |= HAS_EXPLANATION
    paths = [(path or "").encode() for path in predictions.explanation]
    return glue(part, [name + names + path for name, path in zip(ids, paths, strict=True)])


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
    path = value[at + size :].decode()
    if path and not header.flags & HAS_EXPLANATION:
        message = f"{len(value)} bytes; the parts of the header end at {at + size}"
        raise ValueError(message)
    label = classes[header.label] if 0 <= header.label < len(classes) else None
    members = {"explanation": path} if path else NO_MEMBERS
    return [PredictionRow(name, label, dict(zip(classes, probabilities, strict=True)), version, members)]


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
