"""Restore progress of a partition: for the log, for `/readyz?verbose` and for metrics.

A restore reads a snapshot, and then replays what the journal lists since. The amount is known beforehand. It
is counted in offsets of the sources, including holes and markers, so that done and remaining offsets add up
to the total.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

logger = logging.getLogger(__name__)

LOG_SECONDS: Final = 5.0

Beginning = Literal["snapshot", "older-snapshot", "reset", "journal"]
"""Where a replay begins: at the newest snapshot; at an earlier one, as the newest is not whole; at a reset;
or at the beginning of the journal.
"""


@dataclass(slots=True)
class RestoreProgress:
    """Progress of one partition; written by the restoring thread, read by other threads without a lock."""

    partition: int
    say: Callable[[str], None] = lambda text: None  # noqa: ARG005 - takes the progress in words
    clock: Callable[[], float] = time.monotonic
    beginning: Beginning = "journal"
    total: int = 0  # offsets to replay
    done: int = 0  # of them
    began: float = field(init=False)
    _logged: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self._logged = self.clock()

    @property
    def left(self) -> int:
        """Offsets that are still to be replayed."""
        return self.total - self.done

    def reads(self, beginning: Beginning, what: str) -> None:
        """Note that a snapshot is being read; `what`: its description and size."""
        self.beginning = beginning
        self.say(f"reading {what}")
        logger.info("partition %d: restoring from %s", self.partition, what)

    def begins(self, beginning: Beginning, total: int) -> None:
        """Note where the replay begins, and how many offsets it has to replay."""
        self.beginning, self.total = beginning, total
        self._logged = self.clock()
        if total:
            self._say()
            logger.info(
                "partition %d: restoring, %s records to replay after the %s",
                self.partition,
                f"{total:,}",
                _IN_WORDS[beginning],
            )

    def replayed(self, offsets: int) -> None:
        """Note that `offsets` more offsets were replayed."""
        self.done += offsets
        self._say()
        now = self.clock()
        if now - self._logged >= LOG_SECONDS and self.left:
            self._logged = now
            logger.info("partition %d: %s in %.0f s", self.partition, self._words, now - self.began)

    @property
    def _words(self) -> str:
        return f"replayed {self.done:,} of {self.total:,} records"

    def _say(self) -> None:
        self.say(self._words)


_IN_WORDS: Final[dict[Beginning, str]] = {
    "snapshot": "newest snapshot",
    "older-snapshot": "newest whole snapshot",
    "reset": "reset",
    "journal": "beginning of the journal",
}
