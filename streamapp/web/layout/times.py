"""Times: relative to now, with the exact time as the title that the pointer shows."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from typing import Final

from streamapp.web.formatting import moment, span

NEAR_MS: Final = 60 * 24 * 3600 * 1000
"""A time that is further away is written as a date."""


def relative(time_ms: int, now: int) -> str:
    """Return a time relative to now; a time that is far away as a date.

    A time of the last minute has no seconds, so that a page does not change with every look.

    >>> relative(0, 30_000), relative(0, 7_200_000), relative(600_000, 0), relative(0, 1_700_000_000_000)
    ('less than 1 min ago', '2 h ago', 'in 10 min', '1970-01-01')
    """
    distance = abs(time_ms - now)
    if distance > NEAR_MS:
        return moment(time_ms).partition(" ")[0]
    words = "less than 1 min" if distance < 60_000 else span(distance)
    return f"in {words}" if time_ms > now else f"{words} ago"


def exact(time_ms: int) -> str:
    """Return a time with its time zone.

    >>> exact(1_700_000_000_000)
    '2023-11-14 22:13:20 UTC'
    """
    return f"{moment(time_ms)} UTC"


def time_html(time_ms: int, now: int, words: str | None = None) -> str:
    """Return a relative time as an HTML element; words: written in its place.

    >>> time_html(0, 30_000)
    '<time datetime="1970-01-01T00:00:00Z" title="1970-01-01 00:00:00 UTC">less than 1 min ago</time>'
    """
    shown = html.escape(relative(time_ms, now) if words is None else words)
    title = html.escape(exact(time_ms))
    return f'<time datetime="{machine_readable(time_ms)}" title="{title}">{shown}</time>'


def machine_readable(time_ms: int) -> str:
    """Return a time for the attribute `datetime`; "": it is no date.

    >>> machine_readable(0), machine_readable(2**60)
    ('1970-01-01T00:00:00Z', '')
    """
    try:
        return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""
