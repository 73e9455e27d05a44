"""Output records: columns of one topic, in input order, ready to be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from streamapp.columnar.values import Bytes, Values
from streamapp.outputs.limits import RECORD_BYTES, HeaderList, headers_bytes
from topics.records import Ints64

Cell = TypeVar("Cell")


@dataclass(frozen=True, slots=True, eq=False)
class OutputRecords:
    """Records for one topic; columns of equal length."""

    topic: str
    kind: str  # what each of them is
    values: Values
    keys: Sequence[bytes | None]
    timestamps: Sequence[int]
    headers: list[HeaderList] | None  # None: no record has any
    records: Ints64  # int64[n] index in RawRecords of what each is about
    most_bytes: int  # no record is larger

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.values)

    @property
    def buffer(self) -> Bytes:
        """uint8, contiguous: all values, one behind the other; a null takes no bytes (`values.has_nulls`)."""
        return self.values.buffer

    @property
    def starts(self) -> Ints64:
        """int64[n + 1]: where in the buffer each value begins, and the last one ends."""
        return self.values.starts

    def bytes_of(self, at: int) -> int:
        """Return what a record takes on the wire."""
        headers = () if self.headers is None else self.headers[at]
        return RECORD_BYTES + len(self.keys[at] or b"") + self.values.size(at) + headers_bytes(headers)

    def taken(self, order: Ints64) -> OutputRecords:
        """Return some of the records in the given order (int64[m])."""
        places = order.tolist()
        return OutputRecords(
            self.topic,
            self.kind,
            self.values.taken(order),
            _taken(self.keys, places),
            _taken(self.timestamps, places),
            None if self.headers is None else _taken(self.headers, places),
            self.records[order],
            self.most_bytes,
        )


def in_input_order(parts: Sequence[OutputRecords]) -> OutputRecords:
    """Return the records of several parts (of one topic, at least one) in the order of what they answer."""
    if len(parts) == 1:
        return parts[0]
    headers: list[HeaderList] | None = None
    if any(part.headers for part in parts):
        headers = [each for part in parts for each in part.headers or [[]] * len(part)]
    together = OutputRecords(
        parts[0].topic,
        parts[0].kind,
        Values.joined([part.values for part in parts]),
        [cell for part in parts for cell in part.keys],
        [cell for part in parts for cell in part.timestamps],
        headers,
        np.concatenate([part.records for part in parts]),
        max(part.most_bytes for part in parts),
    )
    return together.taken(np.argsort(together.records, kind="stable"))


def _taken(cells: Sequence[Cell], order: list[int]) -> list[Cell]:
    return [cells[at] for at in order]
