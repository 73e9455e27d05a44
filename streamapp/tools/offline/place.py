"""Place: a record in the log of a source, in the notation of operators."""

from __future__ import annotations

from dataclasses import dataclass

from streamapp.errors import UsageError


@dataclass(frozen=True, slots=True)
class Place:
    """A record of a source; by default of `instances`."""

    partition: int
    offset: int

    @staticmethod
    def parse(text: str, said_as: str = "--at", source: str = "instances") -> Place:
        """Return the place that `PARTITION:OFFSET` names (or `PARTITION-OFFSET`, as in ids); UsageError."""
        partition, colon, offset = text.replace("-", ":", 1).partition(":")
        if not (colon and _is_number(partition) and _is_number(offset)):
            message = f"{said_as} {text!r} must be PARTITION:OFFSET of the topic {source}, for example 3:1200"
            raise UsageError(message)
        return Place(int(partition), int(offset))

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
