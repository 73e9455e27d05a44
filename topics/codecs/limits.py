"""How large a record may be before it is refused unread."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what one record may carry; beyond them it is malformed (`too-large`, `too-many-rows`)."""

    record_max_bytes: int = 8 * 1024 * 1024
    block_max_rows: int = 10_000

    def __post_init__(self) -> None:
        """Refuse bounds under which no record could pass."""
        for name in ("record_max_bytes", "block_max_rows"):
            value = getattr(self, name)
            if value < 1:
                message = f"{name}={value} must be at least 1"
                raise ValueError(message)
