"""Clock: the time that people, leases and labels of the web application go by."""

import time


def now_ms() -> int:
    """Return the time in ms since the epoch."""
    return time.time_ns() // 1_000_000
