"""Limits: the largest record, and the largest parts of it, that are accepted."""

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
    """Features in a record; each costs some microseconds and hundred bytes."""
    class_max_bytes: int = 256
    """UTF-8 of a class name: each answer of the model repeats it, even if the record is small."""

    def __post_init__(self) -> None:
        """Refuse bounds that no record could meet."""
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if value < 1:
                message = f"{name}={value} must be at least 1"
                raise ValueError(message)

    @property
    def json_max_values(self) -> int:
        """Values in a JSON record: a parser makes an object for each, even if it is sent in a byte or two."""
        return 4 * self.features_max

    @property
    def control_max_values(self) -> int:
        """Values in a control, such as a schema with its values, or a spec in a string."""
        return 16 * self.json_max_values

    def block_max_cells(self, size: int) -> int:
        """Values in a block of `size` bytes: each takes eight bytes or a string in memory."""
        return max(1 << 20, size // 4)

    def block_max_text(self, size: int) -> int:
        """Bytes of text in a block of `size` bytes, counted for every row: requests repeat them."""
        return max(16 << 20, 2 * size)
