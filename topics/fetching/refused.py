"""Refused batches: those whose records are not read, because they are too many bytes or none at all.

A refused batch becomes one dead letter. Which batches a worker refused, its journal says: a restore passes
over the same ones, whatever the settings are by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from topics.errors import Reason

KEPT_BYTES: Final = 4096
"""Bytes of a refused batch that its dead letter keeps, from the head on: enough to find its producer."""

RECORD_COST: Final = 64
"""Bytes that a record of a batch takes beside its own (a row of the table that says where its parts lie)."""

BATCH_BYTES: Final = 64 << 20
"""The default of `fetch.decompressed.max.bytes`."""


@dataclass(frozen=True, slots=True)
class RefusedBatch:
    """A batch of which no record is read."""

    first: int  # offset: its first one that was wanted
    last: int  # offset
    timestamp: int  # ms
    reason: Reason  # BATCH_TOO_LARGE, BAD_BATCH
    detail: str  # one sentence for a person
    head: bytes  # the batch as it lies in the log, at most KEPT_BYTES of it
    inflated: int = 0  # bytes that it had become when that ended


NO_REFUSED: Final[Mapping[int, RefusedBatch]] = MappingProxyType({})
"""None, by the offset of the record that stands for each."""
