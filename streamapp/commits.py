"""When and how processed work is committed: the outputs first, then the offsets.

    runs      ──1──2──3──────4────5──────6──7──     computing goes on while a commit is under way:
    outputs     1  2  3 │ flush 1-3 │ 4 5   6  7     what it leads to is held until the flush is over
    offsets             └───────────┴─ 3

The flush waits until the broker has acknowledged every output; what is sent meanwhile prolongs it. A little
may pass (else a slow stream would wait for every commit), the rest is held, and what is held is bounded.

Nothing here waits in the event loop. While the producer has no room (a slow broker, or one that is away) what
is sent is kept, and `room` comes only when a thread has handed it over: after each run, so it is a run's.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from streamapp.runs import Run

# Commits that take longer than half the interval come less often, but not because one waited out an outage.
MAX_STRETCHED_INTERVAL = 2.0  # seconds
MAX_PASSED_RECORDS = 500
MAX_HELD_RECORDS = 20_000
MAX_HELD_BYTES = 64 << 20  # of the records held and their outputs; a block may have megabytes


class Outputs(Protocol):
    """Where effects go."""

    def send(self, run: Run, effects: Any) -> None:
        """Hand the outputs of a run to the producer; never wait for it."""

    def bytes_of(self, effects: Any) -> int:
        """Return what the outputs of a run take in memory."""

    @property
    def is_full(self) -> bool:
        """Whether the producer has no room for more."""

    def drain(self) -> None:
        """Return when the producer has room again; raise when outputs cannot be delivered."""

    def flush(self) -> None:
        """Return when all that was sent is acknowledged; raise when some of it cannot be delivered."""


class Commits:
    """One commit at a time. `send` and the rest belong to the event loop, only the flush to a thread."""

    def __init__(
        self, outputs: Outputs, *, interval: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`interval`: seconds between commits."""
        self._outputs = outputs
        self._interval = interval
        self._clock = clock
        self._held: list[tuple[Run, Any]] = []
        self._held_records = 0
        self._held_bytes = 0
        self._passed_records = 0  # sent since the flush under way began
        self._flushed = asyncio.Event()
        self._flushed.set()
        self.seconds = 0.0  # the last commit took
        self.due: float | None = None  # None: nothing is uncommitted

    @property
    def interval(self) -> float:
        """Seconds between commits, stretched when they are slow."""
        return max(self._interval, min(2 * self.seconds, MAX_STRETCHED_INTERVAL))

    def note(self) -> None:
        """Note that something was processed."""
        if self.due is None:
            self.due = self._clock() + self.interval

    def is_due(self, now: float) -> bool:
        """Tell whether it is time to commit."""
        return self.due is not None and now >= self.due

    def send(self, run: Run, effects: Any) -> None:
        """Send the outputs of a run, or hold them while a flush is under way; in order in any case."""
        n = len(run.raw)
        if not self._flushed.is_set():
            if self._held or self._passed_records + n > MAX_PASSED_RECORDS:
                self._held.append((run, effects))
                self._held_records += n
                self._held_bytes += sum(map(len, filter(None, run.raw.values))) + self._outputs.bytes_of(
                    effects
                )
                return
            self._passed_records += n
        self._outputs.send(run, effects)

    async def room(self) -> None:
        """Return when more may be sent or held; raise when outputs cannot be delivered."""
        if self._held_records > MAX_HELD_RECORDS or self._held_bytes > MAX_HELD_BYTES:
            await self._flushed.wait()
        if self._outputs.is_full:
            await _in_daemon(self._outputs.drain)

    async def commit(self, commit_offsets: Callable[[], Awaitable[None]]) -> None:
        """Flush what was sent up to now, then commit."""
        started = self._clock()
        self.due = None
        self._passed_records = 0
        self._flushed.clear()
        try:
            await _in_daemon(self._outputs.flush)
        finally:
            held, self._held = self._held, []
            self._held_records = self._held_bytes = 0
            self._flushed.set()
        for run, effects in held:
            self._outputs.send(run, effects)
        await commit_offsets()
        self.seconds = self._clock() - started


async def _in_daemon(work: Callable[[], None]) -> None:
    """Run `work` in a thread that does not keep the process alive: it may wait minutes for a broker."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.done():
            return  # nobody waits any more
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as caught:  # whatever it is, it belongs to the one who waits
            error = caught
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name=work.__name__, daemon=True).start()
    await done
