"""Columns of instances and labels to packed records."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from topics.codecs.packed.layout import (
    DECLINED,
    DTYPES,
    HAS_ANNOTATOR,
    HAS_LABEL,
    HAS_WEIGHT,
    INSTANCE,
    LABEL,
    MAGIC,
    NAME_MAX_BYTES,
    TEXT,
    VERSION,
)
from topics.columns.records import Features, Floats
from topics.errors import CodecError

_HEADER: list[tuple[str, str]] = [
    ("magic", "V2"),
    ("version", "u1"),
    ("kind", "u1"),
    ("value_bytes", "u1"),
    ("flags", "u1"),
    ("id_bytes", "<u2"),
    ("count", "<u4"),
    ("label", "<i4"),
]
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,9}")  # as str(int) writes it, short enough to check its size


def fixed_part(n: int, kind: int, value_bytes: int, count: int, eighth: str | None) -> npt.NDArray[np.void]:
    """Return the fixed part of n records as a structured array; `eighth`: type of the 8 bytes at 16."""
    columns: list[tuple[str, str] | tuple[str, str, tuple[int]]] = [*_HEADER]
    if eighth is not None:
        columns.append(("eighth", eighth))
    columns.append(("values", DTYPES[value_bytes], (count,)))
    part = np.zeros(n, dtype=columns)
    part["magic"] = np.void(MAGIC)
    part["version"] = VERSION
    part["kind"] = kind
    part["value_bytes"] = value_bytes
    part["count"] = count
    return part


def set_ids(part: npt.NDArray[np.void], ids: Sequence[str]) -> list[bytes]:
    """Write the lengths of the ids into the fixed part and return their bytes."""
    cells = list(map(str.encode, ids))
    longest = max(map(len, cells), default=0)
    if longest > NAME_MAX_BYTES:
        message = f"id of {longest} bytes must have at most {NAME_MAX_BYTES} to be packed; use json or arrow"
        raise CodecError(message)
    part["id_bytes"] = list(map(len, cells))
    return cells


def glue(part: npt.NDArray[np.void], tails: Sequence[bytes] | None) -> list[bytes]:
    """Return the records: each fixed part followed by its tail."""
    blob, width = part.tobytes(), part.dtype.itemsize
    starts = range(0, len(blob), width)
    if tails is None:
        return [blob[at : at + width] for at in starts]
    return [blob[at : at + width] + tail for at, tail in zip(starts, tails, strict=True)]


def write_instances(
    features: Features,
    ids: Sequence[str] | None,
    labels: Sequence[str | None] | None,
    weights: Floats | None,
) -> list[bytes]:
    """Return one record for each row, float64."""
    part = _part(INSTANCE, len(features), features, weights)
    texts = None if labels is None else _set_labels(part, labels)
    tails = None if ids is None else set_ids(part, ids)
    return glue(part, _joined(texts, tails))


def write_labels(
    ids: Sequence[str],
    labels: Sequence[str | None],
    weights: Floats | None,
    annotators: Sequence[str | None] | None,
    features: Features | None,
) -> list[bytes]:
    """Return one record for each row; a null label means declined."""
    part = _part(LABEL, len(ids), features, weights)
    texts = _set_labels(part, labels)
    part["flags"] |= np.where(part["flags"] & HAS_LABEL, 0, DECLINED).astype(np.uint8)
    tails = _joined(texts, set_ids(part, ids))
    if annotators is not None:
        names = [b"" if name is None else name.encode() for name in annotators]
        part["flags"] |= np.array([HAS_ANNOTATOR if name else 0 for name in names], dtype=np.uint8)
        tails = _joined(tails, names)
    return glue(part, tails)


def _part(kind: int, n: int, features: Features | None, weights: Floats | None) -> npt.NDArray[np.void]:
    if features is not None and any(
        cell is not None for cells in features.strings.values() for cell in cells
    ):
        column = min(features.strings)
        name = column if features.names is None else repr(features.names[column])
        message = f"feature {name} holds strings; packed carries numbers only: use json or arrow"
        raise CodecError(message)
    count = 0 if features is None else features.values.shape[1]
    part = fixed_part(n, kind, 8, count, None if weights is None else "<f8")
    if features is not None:
        part["values"] = features.values
    if weights is not None:
        part["eighth"] = weights
        part["flags"] |= HAS_WEIGHT
    return part


def _set_labels(part: npt.NDArray[np.void], labels: Sequence[str | None]) -> list[bytes] | None:
    """Write labels, or the lengths of their names, into the fixed part; return the names that follow it."""
    cells = {label: _label(label) for label in set(labels)}
    part["flags"] |= np.array([cells[label][0] for label in labels], dtype=np.uint8)
    part["label"] = [cells[label][1] for label in labels]
    return [cells[label][2] for label in labels] if any(text for *_, text in cells.values()) else None


def _label(label: str | None) -> tuple[int, int, bytes]:
    """Return flags, number and text of a label: the number if the name is one in canonical form."""
    if label is None:
        return 0, 0, b""
    if _WHOLE_NUMBER.fullmatch(label):
        number = int(label)
        if -(2**31) <= number < 2**31:
            return HAS_LABEL, number, b""
    text = label.encode()
    return HAS_LABEL | TEXT, len(text), text


def _joined(left: Sequence[bytes] | None, right: Sequence[bytes] | None) -> Sequence[bytes] | None:
    if left is None or right is None:
        return right if left is None else left
    return [a + b for a, b in zip(left, right, strict=True)]
