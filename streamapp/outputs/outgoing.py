"""Output records: columns of one topic, in input order, ready to be sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from streamapp.outputs.limits import HeaderList, record_bytes

Cell = TypeVar("Cell")


@dataclass(frozen=True, slots=True, eq=False)
class OutputRecords:
    """Records for one topic; columns of equal length."""

    topic: str
    kind: str  # what each of them is
    values: list[bytes | None]
    keys: list[bytes | None]
    timestamps: list[int]
    headers: list[HeaderList] | None  # None: no record has any
    records: list[int]  # index in RawRecords of what each is about
    most_bytes: int  # no record is larger

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.values)

    def bytes_of(self, at: int) -> int:
        """Return what a record takes on the wire."""
        headers = () if self.headers is None else self.headers[at]
        return record_bytes(self.keys[at], self.values[at], headers)

    def taken(self, order: Iterable[int]) -> OutputRecords:
        """Return some of the records in the given order."""
        order = list(order)
        return OutputRecords(
            self.topic,
            self.kind,
            _taken(self.values, order),
            _taken(self.keys, order),
            _taken(self.timestamps, order),
            None if self.headers is None else _taken(self.headers, order),
            _taken(self.records, order),
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
        [cell for part in parts for cell in part.values],
        [cell for part in parts for cell in part.keys],
        [cell for part in parts for cell in part.timestamps],
        headers,
        [cell for part in parts for cell in part.records],
        max(part.most_bytes for part in parts),
    )
    return together.taken(np.argsort(together.records, kind="stable").tolist())


def _taken(cells: list[Cell], order: list[int]) -> list[Cell]:
    return [cells[at] for at in order]
