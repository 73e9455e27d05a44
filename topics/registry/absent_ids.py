"""Absent ids: schemas that a registry did not have a moment ago, and that are not requested again at once."""

from __future__ import annotations

import time
from typing import Final

from topics.registry.registered_schema import SchemaId

ABSENT_S: Final = 60.0
"""How long an id counts as unknown to the registry; after that it is looked up again."""
MOST_ABSENT: Final = 10_000


class AbsentIds:
    """The newest absent ids; their number is bounded, because producers may make up ids."""

    def __init__(self) -> None:
        self._ends: dict[SchemaId, float] = {}  # by monotonic time, ascending

    def __contains__(self, schema_id: SchemaId) -> bool:
        """Whether the registry did not have an id within the last ABSENT_S seconds."""
        return self._ends.get(schema_id, 0.0) > time.monotonic()

    def add(self, schema_id: SchemaId) -> int:
        """Note an id; return how many are noted."""
        now = time.monotonic()
        self._ends.pop(schema_id, None)  # to the end of the order
        while self._ends:
            oldest = next(iter(self._ends))
            if self._ends[oldest] > now and len(self._ends) < MOST_ABSENT:
                break
            del self._ends[oldest]
        self._ends[schema_id] = now + ABSENT_S
        return len(self._ends)
