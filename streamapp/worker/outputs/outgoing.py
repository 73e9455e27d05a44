"""Output records: columns of one topic, in input order, ready to be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamapp.worker.outputs.record_sizes import record_bytes
from topics.columns.header_columns import HeaderColumns
from topics.columns.records import Ints64
from topics.columns.spans import Numbers, Spans


@dataclass(frozen=True, slots=True, eq=False)
class OutputRecords:
    """Records for one topic; columns of equal length."""

    topic: str
    kind: str  # the kind of each record
    values: Spans
    keys: Spans
    timestamps: Numbers
    headers: HeaderColumns | None  # None: no record has any
    records: Ints64  # int64[n] index in RawRecords of the input that each is about
    most_bytes: int  # no record is larger

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.values)

    def bytes_of(self, at: int) -> int:
        """Return the bytes of a record on the wire."""
        headers = () if self.headers is None else self.headers[at]
        return record_bytes(self.keys[at], self.values[at], headers)

    def taken(self, order: Ints64) -> OutputRecords:
        """Return some of the records in the given order (int64[m])."""
        return OutputRecords(
            self.topic,
            self.kind,
            self.values.where(order),
            self.keys.where(order),
            Numbers(self.timestamps.array[order]),
            None if self.headers is None else self.headers.where(order),
            self.records[order],
            self.most_bytes,
        )


def in_input_order(parts: Sequence[OutputRecords]) -> OutputRecords:
    """Return the records of several parts (of one topic, at least one) in the order of their inputs."""
    if len(parts) == 1:
        return parts[0]
    headers: HeaderColumns | None = None
    if any(part.headers is not None for part in parts):
        headers = HeaderColumns.joined(
            [HeaderColumns.of([()] * len(part)) if part.headers is None else part.headers for part in parts]
        )
    together = OutputRecords(
        parts[0].topic,
        parts[0].kind,
        Spans.joined([part.values for part in parts]),
        Spans.joined([part.keys for part in parts]),
        Numbers(np.concatenate([part.timestamps.array for part in parts])),
        headers,
        np.concatenate([part.records for part in parts]),
        max(part.most_bytes for part in parts),
    )
    return together.taken(np.argsort(together.records, kind="stable"))
