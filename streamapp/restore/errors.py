"""Why a partition cannot be restored: not yet, or not at all."""

from __future__ import annotations

from streamapp.errors import StreamappError


class RestoreError(StreamappError):
    """The state of a partition cannot be had; says why, and what can be done about it."""

    def __init__(self, partition: int, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"partition {partition} cannot be restored: {reason}; "
            f"'grove models reset --partition {partition}' would give it new models"
        )


class NotYetError(Exception):
    """A transaction of another worker is still open; its end has to be waited for."""


class AbandonedError(Exception):
    """Nobody wants the partition restored any more."""
