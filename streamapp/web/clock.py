"""Clock: the time that leases, undo windows and labels of the web application use."""

import time


def now_ms() -> int:
    """Return the time in ms since the epoch."""
    return time.time_ns() // 1_000_000
