"""Concept change: a stream that changes once, in its middle, at one record or along a sigmoid."""

from __future__ import annotations

from typing import Any, Final

from core.streams.base import Generator, open_generator

KINDS: Final = {"abrupt": 0.0, "gradual": 0.1}
"""Width of the change, as a share of the stream."""

AT_ONCE: Final = 0.01
"""Records of a sigmoid that is a step: half a record from its middle it is 0 or 1 to the last bit."""

Concept = tuple[str, dict[str, Any]]
"""Generator and options."""


def change_of(kind: str, records: int) -> int:
    """Return the record at which a change begins: a sigmoid is above 2 % from half of its width on."""
    return int(records / 2 - KINDS[kind] * records)


def changing_stream(before: Concept, after: Concept, kind: str, records: int, seed: int) -> Generator:
    """Return the stream of a seed; of an abrupt change no record before the middle is of the new concept."""
    width = KINDS[kind] * records
    (old, old_options), (new, new_options) = before, after
    return open_generator(
        "drift",
        before=open_generator(old, seed=2 * seed + 1, **old_options),
        after=open_generator(new, seed=2 * seed + 2, **new_options),
        # The generator counts records from 1 on, and half of those at the position are new.
        position=records / 2 + (0.0 if width else 0.5),
        width=width or AT_ONCE,
        seed=seed + 1,
    )
