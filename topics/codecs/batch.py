"""Batch: the records of one format within a run, after the checks common to all formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import numpy.typing as npt

from topics.codecs.flaws import Flaws
from topics.codecs.offset_ids import OffsetIds
from topics.columns.records import Ints32
from topics.columns.spans import Numbers, Spans


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """m records of one format: valid key, a value that is not null and not too large."""

    partition: int
    record: Ints32  # int32[m]: index in RawRecords, ascending
    offsets: Sequence[int]
    values: Sequence[bytes]
    keys: list[str]  # distinct keys of the whole run, shared by all its batches
    key: Ints32  # int32[m] into keys

    def __len__(self) -> int:
        return len(self.values)

    def default_ids(self) -> OffsetIds:
        """Return the ids of records whose producer gave no id."""
        return OffsetIds(f"{self.partition}-", self.offsets)

    def without(self, flaws: Flaws) -> tuple[Batch, list[bool]]:
        """Return the batch without its bad records, and the mask of the good records."""
        mask = [row not in flaws for row in range(len(self))]
        return self.where(mask), mask

    def where(self, mask: Sequence[bool] | npt.NDArray[np.bool_]) -> Batch:
        """Return the records for which `mask` holds."""
        chosen = np.asarray(mask, dtype=np.bool_)
        offsets, values = self.offsets, self.values
        return Batch(
            self.partition,
            self.record[chosen],
            Numbers(offsets.array[chosen])
            if isinstance(offsets, Numbers)
            else [*compress(offsets, chosen.tolist())],
            values.where(chosen) if isinstance(values, Spans) else [*compress(values, chosen.tolist())],  # type: ignore[arg-type]
            self.keys,
            self.key[chosen],
        )
