"""Limits: how large a record and its parts may be before it is refused."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what one record may carry; beyond them it is malformed (`too-large`, `too-long`, …)."""

    record_max_bytes: int = 8 * 1024 * 1024
    block_max_rows: int = 10_000
    text_max_bytes: int = 1024
    """UTF-8 of a model key, id, class, annotator, feature name or nominal value."""
    features_max: int = 16_384
    """Features that a record may name; each costs some microseconds and hundred bytes."""
    class_max_bytes: int = 256
    """UTF-8 of the name of a class: each answer of its model repeats it, however small its record is."""

    def __post_init__(self) -> None:
        """Refuse bounds under which no record could pass."""
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if value < 1:
                message = f"{name}={value} must be at least 1"
                raise ValueError(message)

    @property
    def json_max_values(self) -> int:
        """Values that a JSON record may hold: a parser makes an object of each, of a byte or two."""
        return 4 * self.features_max

    @property
    def control_max_values(self) -> int:
        """Values that a control may have: a schema with its values, a spec in a string."""
        return 16 * self.json_max_values

    def block_max_cells(self, size: int) -> int:
        """Values of a block of `size` bytes: eight bytes or a string each, however few it is sent in."""
        return max(1 << 20, size // 4)

    def block_max_text(self, size: int) -> int:
        """Bytes of the texts of a block of `size` bytes, each counted for every row: requests repeat them."""
        return max(16 << 20, 2 * size)
