"""Absent ids: schemas that could not be had a moment ago, and that are not requested again at once."""

from __future__ import annotations

import time
from typing import Final

from topics.registry.registered_schema import SchemaId

ABSENT_S: Final = 60.0
"""How long an id counts as absent; after that it is looked up again."""
MOST_ABSENT: Final = 10_000


class AbsentIds:
    """The newest absent ids, with the reasons; their number is bounded, because producers may make up ids."""

    def __init__(self) -> None:
        self._ends: dict[SchemaId, tuple[float, str]] = {}  # by monotonic time, ascending

    def reason(self, schema_id: SchemaId) -> str | None:
        """Return why an id could not be had within the last ABSENT_S seconds; None if it was not tried."""
        end, reason = self._ends.get(schema_id, (0.0, ""))
        return reason if end > time.monotonic() else None

    def add(self, schema_id: SchemaId, reason: str) -> int:
        """Note an id; return how many are noted."""
        now = time.monotonic()
        self._ends.pop(schema_id, None)  # to the end of the order
        while self._ends:
            oldest = next(iter(self._ends))
            if self._ends[oldest][0] > now and len(self._ends) < MOST_ABSENT:
                break
            del self._ends[oldest]
        self._ends[schema_id] = now + ABSENT_S, reason
        return len(self._ends)


def not_registered(schema_id: SchemaId) -> str:
    """Return the reason of an id that the registry does not have."""
    return f"the schema registry does not have schema {schema_id}"
