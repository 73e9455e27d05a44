"""Groups of packed records with the same header and length: a table of bytes, one row per record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from topics.codecs.flaws import Flaw, Flaws, add_flaw
from topics.codecs.packed.layout import DTYPES, HEADER, LABEL_AT, TEXT, Header, read_header
from topics.columns.records import Floats, Ints64
from topics.errors import Reason

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """m records that differ only in the content of their fields."""

    header: Header  # label: of the first record only, unless it is the bytes of a text
    rows: Ints64  # int64[m], ascending: rows of the batch
    table: Bytes  # uint8[m, length]

    def column(self, start: int, dtype: str, count: int = 1) -> npt.NDArray[Any]:
        """Return `count` little-endian numbers of each record in the machine's byte order: [m, count]."""
        kind = np.dtype(dtype)
        stop = start + count * kind.itemsize
        cells = np.ascontiguousarray(self.table[:, start:stop]).view(kind)
        return cells.astype(kind.newbyteorder("="), copy=False)

    def values(self) -> Floats:
        """Return float64[m, count]."""
        header = self.header
        cells = self.column(header.values_at, DTYPES[header.value_bytes], header.count)
        with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
            return cells.astype(np.float64, copy=False)

    def texts(self, name: str, start: int, stop: int, flaws: Flaws) -> list[str]:
        """Return the UTF-8 text of each record between two offsets."""
        blob = self.table[:, start:stop].tobytes()
        width = stop - start
        if blob.isascii():
            text = blob.decode("ascii")
            return [text[at : at + width] for at in range(0, len(text), width)]
        cells = [blob[at : at + width] for at in range(0, len(blob), width)]
        return [
            self._decode(name, row, cell, flaws) for row, cell in zip(self.rows.tolist(), cells, strict=True)
        ]

    @staticmethod
    def _decode(name: str, row: int, cell: bytes, flaws: Flaws) -> str:
        try:
            return cell.decode()
        except UnicodeDecodeError as error:
            detail = f"{name} must be UTF-8; byte {error.start} is not"
            flaws.setdefault(row, Flaw(Reason.WRONG_TYPE, detail))
            return ""


def group(values: Sequence[bytes], kind: int, flaws: Flaws) -> list[Group]:
    """Return the records of this kind in groups; a record with a wrong header or length is in none."""
    groups: list[Group] = []
    for rows, table in _alike(values):
        header = read_header(values[rows[0]], kind)
        if isinstance(header, Flaw):
            add_flaw(flaws, rows, header)
        else:
            # np.asarray would convert a range number by number.
            number = np.arange(len(rows)) if isinstance(rows, range) else np.asarray(rows, dtype=np.int64)
            groups.append(Group(header, number, table))
    return groups


def _alike(values: Sequence[bytes]) -> list[tuple[Sequence[int], Bytes]]:
    """Return the rows whose values have the same length and header, and the table of their bytes."""
    if not values:
        return []
    if len(set(map(len, values))) == 1:
        table = _table(values)
        head = table[:, : _head(values[0])]
        if (head == head[0]).all():
            return [(range(len(values)), table)]
    alike: dict[tuple[int, bytes], list[int]] = {}
    for row, value in enumerate(values):
        alike.setdefault((len(value), value[: _head(value)]), []).append(row)
    return [(rows, _table([values[row] for row in rows])) for rows in alike.values()]


def _head(value: bytes) -> int:
    """Return how many bytes decide the layout: for a label in text these include its length."""
    return HEADER.size if len(value) >= HEADER.size and value[5] & TEXT else LABEL_AT


def _table(values: Sequence[bytes]) -> Bytes:
    return np.frombuffer(b"".join(values), dtype=np.uint8).reshape(len(values), -1)
