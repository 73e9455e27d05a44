"""Whether this worker is alive and ready, judged from a thread that the event loop cannot hold up.

*Alive*: the event loop turns, and committed offsets move while there is lag. A worker is never called dead
for lag alone, nor while the broker does not answer: a restart would help neither.

*Ready*: assigned, every partition live, none stopped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

BEAT_SECONDS = 0.25
LIVE = "live"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    said: str


@dataclass(slots=True)
class Health:
    """The worker's pulse. Plain attributes, written in the event loop and read in the web server's thread."""

    max_beat_age: float = 30.0  # seconds the event loop may be held
    max_stall: float = 120.0  # seconds without a commit while there is lag; more than a request may take
    clock: Callable[[], float] = time.monotonic
    beat: float = field(default_factory=time.monotonic)
    lag: int = 0  # offsets of the live partitions that are not committed
    lag_since: float | None = None  # when it was last 0, or offsets were committed; None: there is none
    broker_reachable: Callable[[], bool] = lambda: True
    assigned: bool = False
    stopping: bool = False
    partitions: dict[int, str] = field(default_factory=dict)  # "live", "restoring", "stopped: why"

    async def keep_beating(self) -> None:
        """Show that the event loop turns, until cancelled."""
        while True:
            self.beat = self.clock()
            await asyncio.sleep(BEAT_SECONDS)

    def lags(self, lag: int) -> None:
        """Note how many offsets are not committed; called at every turn of the driver."""
        self.lag = lag
        if lag == 0:
            self.lag_since = None
        elif self.lag_since is None:
            self.lag_since = self.clock()

    def committed(self) -> None:
        """Note that offsets were committed."""
        if self.lag_since is not None:
            self.lag_since = self.clock()

    def living(self) -> list[Check]:
        """Return the checks of /livez."""
        now = self.clock()
        age = now - self.beat
        since = self.lag_since
        if since is None or not self.broker_reachable():
            progress = Check("progress", True, "no lag" if since is None else "the broker does not answer")
        else:
            stall = now - since
            progress = Check(
                "progress", stall <= self.max_stall, f"lag {self.lag}, last commit {stall:.1f} s ago"
            )
        return [Check("event-loop", age <= self.max_beat_age, f"turned {age:.1f} s ago"), progress]

    def ready(self) -> list[Check]:
        """Return the checks of /readyz."""
        checks = [
            Check("running", not self.stopping, "stopping" if self.stopping else ""),
            Check("assigned", self.assigned, "" if self.assigned else "waiting for the group"),
        ]
        for number, state in sorted(self.partitions.items()):
            checks.append(Check(f"partition-{number}", state == LIVE, state))
        return checks
