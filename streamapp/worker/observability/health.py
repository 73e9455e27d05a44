"""Health: whether this worker is alive and ready, checked in a thread that the event loop cannot block.

*Alive*: the event loop turns, and committed offsets move while there is lag. A worker is never called dead
for lag alone, nor for waiting because the broker does not answer or does not serve a partition: a restart
would help neither.

*Ready*: assigned, the broker answers, every partition live, none stopped, the token of the sign-in can be
renewed, no partition waits for a schema, `state.dir` can be written, the brokers take parts of snapshots, and
the memory limit is not near.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from streamapp.worker.blocking_calls import run_blocking
from streamapp.worker.state_directory import DISK_HANGS
from topics.tokens.token_source import TokenStatus

logger = logging.getLogger(__name__)

BEAT_SECONDS = 0.25
PARTITION: Final = "partition-"  # of the name of a partition's check
BROKER_AWAY = "the broker does not answer"
LOOK_SECONDS = 2.0  # between two looks at disk and memory
DISK_SECONDS = 10.0  # that a look at the disk may take

READINESS: Final = (
    "running",
    "assigned",
    "broker",
    "state-directory",
    "snapshots",
    "memory",
    "token",
    "schemas",
    "partitions",
)
"""Names of the checks of `/readyz`; `partitions` are all those of single partitions together."""


class Stage(StrEnum):
    """How far an assigned partition is."""

    RESTORING = "restoring"
    WAITS = "waits"  # it cannot be restored yet
    LIVE = "live"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """The status of an assigned partition."""

    stage: Stage
    detail: str = ""  # why, or how far

    @property
    def is_coming(self) -> bool:
        """Whether the partition is on its way to live, as far as is known."""
        return self.stage in (Stage.RESTORING, Stage.WAITS)

    def __str__(self) -> str:
        """Return it as `/readyz?verbose` has it."""
        return f"{self.stage}: {self.detail}" if self.detail else str(self.stage)


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a health page, with its result."""

    name: str
    ok: bool
    detail: str


@dataclass(slots=True)
class RestoreReport:
    """How far one restore of a partition is; written in its thread.

    Each attempt has its own report, so that one that was abandoned cannot replace a newer status.
    """

    how_far: str = ""  # empty: nothing is done yet

    def note(self, how_far: str) -> None:
        self.how_far = how_far


@dataclass(slots=True)
class Health:
    """The state that health checks read.

    Plain attributes, written in the event loop and read in the web server's thread.

    Only a `RestoreReport` is written in other threads.
    """

    max_beat_age: float = 30.0  # seconds the event loop may be held
    max_stall: float = 120.0  # seconds without a commit while there is lag; more than a request may take
    clock: Callable[[], float] = time.monotonic
    beat: float = field(default_factory=time.monotonic)
    lag: int = 0  # offsets not committed of the partitions that are live and served
    lag_since: float | None = None  # when it was last 0, or offsets were committed; None: there is none
    broker_reachable: Callable[[], bool] = lambda: True
    token: Callable[[], TokenStatus] | None = None  # of the sign-in; None: it needs no token
    awaited_schemas: Callable[[], str] | None = None
    """Which partitions wait for schemas, and why; empty: none. None: no schema registry is in use."""
    unserved: Mapping[str, str] = field(
        default_factory=dict
    )  # topic-partition: why the broker does not serve it
    disk: Callable[[], str] = lambda: ""  # why state cannot be stored; empty: it can
    disk_failure: str = ""  # the answer of `disk` when it was last asked
    snapshots: Callable[[], str] = lambda: ""
    """Why the brokers do not take a part of a snapshot; empty: they do. Called in any thread."""
    memory: Callable[[], str] = lambda: ""  # why the memory limit is near; empty: it is not
    memory_failure: str = ""  # the answer of `memory` when it was last asked
    assigned: bool = False
    reading: str = ""  # current activity between the assignment and the first restore
    stopping: bool = False
    partitions: dict[int, PartitionStatus] = field(default_factory=dict)  # those assigned
    restores: dict[int, RestoreReport] = field(default_factory=dict)
    """The newest restore of each partition that is not known to wait; it may have ended."""

    def statuses(self) -> dict[int, PartitionStatus]:
        """Return the status of each assigned partition, with the progress of its restore."""
        statuses = {}
        for number, status in sorted([*self.partitions.items()]):
            report = self.restores.get(number) if status.is_coming else None
            if report is not None and (how_far := report.how_far):
                status = PartitionStatus(Stage.RESTORING, how_far)
            statuses[number] = status
        return statuses

    async def keep_beating(self) -> None:
        """Show that the event loop turns, until cancelled."""
        while True:
            self.beat = self.clock()
            await asyncio.sleep(BEAT_SECONDS)

    async def keep_watching_disk(self) -> None:
        """Note whether state can be stored, and log changes of that, until cancelled."""
        while True:
            looking = asyncio.ensure_future(run_blocking(self.disk))
            ended, _ = await asyncio.wait([looking], timeout=DISK_SECONDS)
            if not ended:
                self._note_disk(DISK_HANGS)
            self._note_disk(await looking)
            await asyncio.sleep(LOOK_SECONDS)

    def _note_disk(self, failure: str) -> None:
        before, self.disk_failure = self.disk_failure, failure
        if failure and (not before or (failure != before and DISK_HANGS in (failure, before))):
            logger.error("%s; live partitions go on, snapshots and restores wait for it", failure)
        elif before and not failure:
            logger.info("state.dir can be written again")

    async def keep_watching_memory(self) -> None:
        """Note whether the memory limit is near, and log changes of that, until cancelled."""
        while True:
            before, self.memory_failure = self.memory_failure, self.memory()
            if self.memory_failure and not before:
                logger.error("%s", self.memory_failure)
            elif before and not self.memory_failure:
                logger.info("the memory limit is not near any more")
            await asyncio.sleep(LOOK_SECONDS)

    def lags(self, lag: int) -> None:
        """Note how many offsets are not committed; called in every iteration of the driver."""
        self.lag = lag
        if lag == 0:
            self.lag_since = None
        elif self.lag_since is None or not self.broker_reachable():
            self.lag_since = self.clock()  # an outage is not held against the worker once it is over

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing was uncommitted or unserved when that was last noted."""
        return self.lag_since is None and not self.unserved

    def committed(self) -> None:
        if self.lag_since is not None:
            self.lag_since = self.clock()

    def new_restore(self, partition: int) -> RestoreReport:
        """Return the report of a restore that begins; it replaces that of an earlier one."""
        report = self.restores[partition] = RestoreReport()
        return report

    def coming(self, partition: int, status: PartitionStatus) -> None:
        """Note that a partition is not live yet, and has made no progress."""
        self.restores.pop(partition, None)
        self.partitions[partition] = status

    def red_checks(self) -> set[str]:
        """Return the names in READINESS whose check of /readyz fails."""
        names = (check.name for check in self.readiness() if not check.ok)
        return {"partitions" if name.startswith(PARTITION) else name for name in names}

    def liveness(self) -> list[Check]:
        """Return the checks of /livez."""
        now = self.clock()
        age = now - self.beat
        return [Check("event-loop", age <= self.max_beat_age, f"turned {age:.1f} s ago"), self._progress(now)]

    def _progress(self, now: float) -> Check:
        since = self.lag_since
        detail, ok = "no lag", True
        if since is not None and not self.broker_reachable():
            detail = BROKER_AWAY
        elif since is not None and self.awaited_schemas is not None and self.awaited_schemas():
            detail = "partitions wait for schemas"  # other partitions may have no records
        elif since is not None:
            ok = now - since <= self.max_stall
            detail = f"lag {self.lag}, last commit {now - since:.1f} s ago"
        if self.unserved:
            detail += f"; {self.not_served()}"
        return Check("progress", ok, detail)

    def not_served(self) -> str:
        """Return the unserved topic partitions as text; there must be one."""
        name, why = next(iter(self.unserved.items()))
        more = len(self.unserved) - 1
        return f"the broker does not serve {name}{f' and {more} more' if more else ''} ({why})"

    def readiness(self) -> list[Check]:
        """Return the checks of /readyz."""
        checks = [
            Check("running", not self.stopping, "stopping" if self.stopping else ""),
            Check(
                "assigned", self.assigned, "" if self.assigned else self.reading or "waiting for the group"
            ),
        ]
        if self.assigned and not self.broker_reachable():
            checks.append(Check("broker", False, BROKER_AWAY))
        if self.disk_failure:
            checks.append(Check("state-directory", False, self.disk_failure))
        if refusal := self.snapshots():
            checks.append(Check("snapshots", False, refusal))
        if self.memory_failure:
            checks.append(Check("memory", False, self.memory_failure))
        if self.token is not None:
            token = self.token()
            checks.append(Check("token", token.is_valid and not token.failure, str(token)))
        if self.awaited_schemas is not None:
            awaited = self.awaited_schemas()
            checks.append(Check("schemas", not awaited, awaited))
        for number, status in self.statuses().items():
            checks.append(Check(f"{PARTITION}{number}", status.stage is Stage.LIVE, str(status)))
        return checks
