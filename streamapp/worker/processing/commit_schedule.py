"""Commit schedule: when processed work is committed, and how computing continues during a commit.

    runs      ──1──2──3──────4────5──────6──7──
    at least once             outputs 1 2 3 │ flush 1-3 │ 4 5   6  7
                              journal, offsets          └─ 3 ─┘
    exactly once              outputs 1 2 3 │ transaction: 1-3, journal, offsets │ 4 5 6 7

At least once flushes the outputs until the broker has acknowledged them, and commits journal and offsets in a
transaction after that. A few outputs may be sent during the flush (else a slow stream would wait for every
commit). Exactly once has outputs, journal and offsets in one transaction; outputs computed during it are held
for the next transaction. The number and size of held outputs are bounded.

Nothing here blocks the event loop. While the producer's queue is full (a slow or unreachable broker) the
outputs of one group of runs are kept, and `room` returns when a thread has handed them to the producer. It is
awaited after each group, so that the outputs of further runs are not kept too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from streamapp.worker.blocking_calls import run_blocking
from streamapp.worker.processing.pipeline import Pipeline
from streamapp.worker.processing.results import Results

# Slow commits stretch the interval, up to this limit: a commit that waited out an outage must not stretch it
# further.
MAX_STRETCHED_INTERVAL = 2.0  # seconds
NEAR_S = 5.0  # seconds: a commit that is due within them is prepared while its records are computed
MAX_PASSED_RECORDS = 500
MAX_HELD_RECORDS = 200_000  # records processed during a commit of a fifth of a second, at a million a second
MAX_HELD_BYTES = 64 << 20  # of the records held and their outputs; a block may have megabytes


class CommitSchedule:
    """Runs one commit at a time, in the event loop; only the flush runs in a thread."""

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        interval: float,
        exactly_once: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`pipeline`: sends outputs; `interval`: seconds between commits; `exactly_once`: outputs are part of
        the transaction."""
        self._pipeline = pipeline
        self.exactly_once = exactly_once
        self._interval = interval
        self._clock = clock
        self._held: list[Results] = []
        self._held_records = 0
        self._held_bytes = 0
        self._passed_records = 0  # sent since the flush under way began
        self._flushed = asyncio.Event()
        self._flushed.set()
        self._last_round_s = 0.0  # duration of the last round of runs before a commit
        self._counts_from: float | None = None  # the interval to the next commit; None: there was none yet
        self.seconds = 0.0  # duration of the last commit
        self.due: float | None = None  # None: nothing is uncommitted

    @property
    def interval(self) -> float:
        """Seconds between commits, stretched when they are slow."""
        return max(self._interval, min(2 * self.seconds, MAX_STRETCHED_INTERVAL))

    def note(self) -> None:
        """Note that something was processed: a commit is due an interval after the last one, or at once."""
        if self.due is None:
            now = self._clock()
            self.due = max(now, self._next(now))

    def _next(self, now: float) -> float:
        """Return when the next commit may begin; the first one is due an interval after the first run."""
        return self.interval + (now if self._counts_from is None else self._counts_from)

    def is_due(self, now: float) -> bool:
        """Return whether it is time to commit: no further round of runs can end before the commit is due."""
        return self.due is not None and now >= self.due - self._last_round_s

    def is_near(self, now: float) -> bool:
        """Return whether the next commit is due within NEAR_S."""
        due = self._next(now) if self.due is None else self.due
        return due - now <= NEAR_S

    def waits_for_runs(self, now: float, *, is_followed: bool) -> bool:
        """Return whether a commit waits for runs that the driver has fetched already.

        Exactly once, the outputs of a run that misses a commit are invisible for another interval. Records of
        several topics are several runs, so a commit right after the first one would miss the labels that were
        fetched with the instances. It waits for half an interval at most.
        """
        due = now if self.due is None else self.due
        return self.exactly_once and is_followed and now < due + self.interval / 2

    def seconds_to_last_round(self, now: float, round_s: float) -> float:
        """Return how long the last round of runs before the next commit, of `round_s` seconds, may wait.

        Exactly once, outputs are not visible before their commit. So waiting loses nothing, and as many
        records as possible are part of that commit, which begins when the round is over. Returns 0 if outputs
        are visible at once, or if the next commit would be due at once.
        """
        if not self.exactly_once:
            return 0.0
        self._last_round_s = min(round_s, self.interval / 2)
        if self.due is not None:
            due = self.due
        elif self._counts_from is not None:
            due = self._next(now)
        else:
            return 0.0
        return max(0.0, due - self._last_round_s - now)

    def send(self, group: Sequence[Results]) -> None:
        """Send the outputs of runs, or hold them while a flush is under way; in order in any case."""
        passing = group if self._flushed.is_set() else [run for run in group if self._passes(run)]
        if passing:
            self._pipeline.send(passing)

    def _passes(self, results: Results) -> bool:
        """Return whether outputs may be sent during a flush; else hold them."""
        n = len(results.run.raw)
        if self.exactly_once or self._held or self._passed_records + n > MAX_PASSED_RECORDS:
            self._held.append(results)
            self._held_records += n
            self._held_bytes += results.size
            return False
        self._passed_records += n
        return True

    async def room(self) -> None:
        """Return when more may be sent or held; raise when outputs cannot be delivered."""
        if self._held_records > MAX_HELD_RECORDS or self._held_bytes > MAX_HELD_BYTES:
            await self._flushed.wait()
        if self._pipeline.sender.is_full:
            await run_blocking(self._pipeline.sender.drain)

    def forget(self) -> None:
        """Discard the held outputs: they will be computed again."""
        self._held, self._held_records, self._held_bytes = [], 0, 0
        self.due = None

    async def commit(self, transact: Callable[[], Awaitable[None]]) -> None:
        """Flush the outputs so far, then `transact`, or both together (steps 3 to 6 of `committer.py`).

        Raise AbortedError if the transaction has to be aborted.
        """
        started = self._clock()
        # After its last round a commit may begin a little before it is due; the next interval counts from
        # when it was due, so that this does not add up.
        self._counts_from = max(started, self.due or started) if self.is_due(started) else started
        self.due = None
        self._passed_records = 0
        self._flushed.clear()
        try:
            await (transact() if self.exactly_once else run_blocking(self._pipeline.sender.flush))  # 3.
        except BaseException:
            self.forget()
            raise
        finally:
            held, self._held = self._held, []
            self._held_records = self._held_bytes = 0
            self._flushed.set()
        if held:
            self._pipeline.send(held)
        if not self.exactly_once:
            await transact()  # 4. to 6.
        self.seconds = self._clock() - started
