"""Refused batches: batches whose records are not read, because they are too large or cannot be read.

A refused batch becomes one dead letter. The worker's journal lists the refused batches: a restore skips the
same batches, whatever the settings are by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from topics.errors import Reason

KEPT_BYTES: Final = 4096
"""Bytes of a refused batch that its dead letter keeps, from the head on: enough to find the producer."""

RECORD_COST: Final = 64
"""Bytes of memory for a record beside its content: its row in the table of the places of its parts."""

HEADER_COST: Final = 32
"""Bytes of a batch for each header that is read: an empty header takes two bytes on the wire, and some
hundred in memory.
"""

BATCH_BYTES: Final = 64 << 20
"""The default of `fetch.decompressed.max.bytes`."""


@dataclass(frozen=True, slots=True)
class RefusedBatch:
    """A batch of which no record is read."""

    first: int  # offset of its first wanted record
    last: int  # offset of its last record
    timestamp: int  # ms
    reason: Reason  # BATCH_TOO_LARGE, BAD_BATCH
    detail: str  # one sentence for a person
    head: bytes  # the batch as it lies in the log, at most KEPT_BYTES of it
    inflated: int = 0  # inflated bytes when inflating stopped


NO_REFUSED: Final[Mapping[int, RefusedBatch]] = MappingProxyType({})
"""No refused batches; the key is the offset of the record that stands for the batch."""
