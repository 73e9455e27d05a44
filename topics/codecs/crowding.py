"""Crowding: how many values a JSON text may hold, counted before it is parsed."""

from __future__ import annotations

from typing import Final

from topics.codecs.flaws import Flaw
from topics.errors import Reason

SMALL: Final = 1 << 16
"""Bytes of a text that is parsed without being counted first."""


def crowding(value: bytes, max_values: int) -> Flaw | None:
    """Return the flaw of a text with too many values: each but the first has a comma or bracket before it.

    Those inside of strings count as well: a text that is longer than any name is no feature.
    """
    if len(value) <= SMALL:
        return None
    n = value.count(b",") + value.count(b"[") + value.count(b"{")
    if n <= max_values:
        return None
    detail = f"the record has {n:,} commas and brackets; a JSON record may have {max_values:,}"
    return Flaw(Reason.TOO_LARGE, detail)
