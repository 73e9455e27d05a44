"""Log throttle: limits messages that aiokafka repeats sixty times a second while a broker is away."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

THROTTLE_SECONDS = 10.0


class LogThrottle(logging.Filter):
    """Lets a message (its text before values are inserted) pass once in `THROTTLE_SECONDS`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[str, tuple[float, int]] = {}  # text -> when, how often it was kept back since

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log `record`; append how many similar messages were suppressed."""
        now, text = self._clock(), str(record.msg)
        when, kept_back = self._said.get(text, (-THROTTLE_SECONDS, 0))
        if now - when < THROTTLE_SECONDS:
            self._said[text] = (when, kept_back + 1)
            return False
        self._said[text] = (now, 0)
        if kept_back:
            record.msg = f"{text} (and {kept_back} times more)"
        return True


def throttle_logs() -> None:
    """Filter the loggers of aiokafka; once per process."""
    for name in [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "aiokafka"]:
        logger = logging.getLogger(name)
        if not any(isinstance(log_filter, LogThrottle) for log_filter in logger.filters):
            logger.addFilter(LogThrottle())
