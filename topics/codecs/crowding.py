"""Crowding: the number of values in a JSON text, bounded before it is parsed."""

from __future__ import annotations

from typing import Final

from topics.codecs.flaws import Flaw
from topics.errors import Reason

SMALL: Final = 1 << 16
"""Bytes of a text that is parsed without counting its values."""


def crowding(value: bytes, max_values: int) -> Flaw | None:
    """Return the flaw of a text with too many values: each value but the first follows a comma or bracket.

    Commas and brackets in strings count as well: a text longer than any name is not a feature.
    """
    if len(value) <= SMALL:
        return None
    n = value.count(b",") + value.count(b"[") + value.count(b"{")
    if n <= max_values:
        return None
    detail = f"the record has {n:,} commas and brackets; a JSON record may have {max_values:,}"
    return Flaw(Reason.TOO_LARGE, detail)
