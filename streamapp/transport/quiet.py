"""While a broker is away aiokafka says so sixty times a second. Here it says each thing once in a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

QUIET_SECONDS = 10.0


class SayOnce(logging.Filter):
    """Lets a message (its text before the values are put in) pass once in `QUIET_SECONDS`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[str, tuple[float, int]] = {}  # text -> when, how often it was kept back since

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether `record` is to be logged; say how many like it were not."""
        now, text = self._clock(), str(record.msg)
        when, kept_back = self._said.get(text, (-QUIET_SECONDS, 0))
        if now - when < QUIET_SECONDS:
            self._said[text] = (when, kept_back + 1)
            return False
        self._said[text] = (now, 0)
        if kept_back:
            record.msg = f"{text} (and {kept_back} times more)"
        return True


def quieten() -> None:
    """Filter the loggers of aiokafka; once per process."""
    for name in [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "aiokafka"]:
        logger = logging.getLogger(name)
        if not any(isinstance(each, SayOnce) for each in logger.filters):
            logger.addFilter(SayOnce())
