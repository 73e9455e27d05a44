"""Renewal: when a token is requested again, before its end and after a failure.

The jitter spreads the requests of many workers. It is a function of their names, so that a worker behaves in
the same way in every run.
"""

from __future__ import annotations

import zlib
from typing import Final

EARLIEST: Final = 0.6  # of a token's life
LATEST: Final = 0.75
"""A token is renewed before librdkafka's clients ask for another, at 80 % of its life."""

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0
LEAST_S: Final = 0.05
PART_OF_REST: Final = 0.25
"""A pause is at most this part of what is left of the token: there are attempts until its end."""


def renewal_s(life_s: float, name: str, n_tokens: int) -> float:
    """Return the seconds from a token's request to the next one."""
    return max(life_s * (EARLIEST + (LATEST - EARLIEST) * _jitter(name, n_tokens)), LEAST_S)


def retry_s(n_failures: int, left_s: float, name: str) -> float:
    """Return the seconds from the n-th failure in a row to the next attempt.

    `left_s` are the seconds until the token ends.
    """
    pause = min(FIRST_PAUSE_S * 2.0 ** min(n_failures - 1, 10), LONGEST_PAUSE_S)
    if left_s > 0:
        pause = min(pause, max(left_s * PART_OF_REST, FIRST_PAUSE_S))
    return pause * (1 - PART_OF_REST * _jitter(name, n_failures))


def _jitter(name: str, number: int) -> float:
    """Return a number in [0, 1) that depends on the arguments alone."""
    return zlib.crc32(f"{name}/{number}".encode()) / 2**32
