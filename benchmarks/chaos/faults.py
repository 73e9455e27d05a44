"""The faults, in an order drawn from a seed."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.chaos import broker_faults
from benchmarks.chaos.broker_faults import BrokerFaults
from benchmarks.chaos.fleet import ChaosError, Fleet, Worker, wait_until
from benchmarks.chaos.retention import Retention
from streamapp.embedded import EmbeddedBroker, EmbeddedCluster

KINDS = {  # number of each kind in a deck
    "kill": 5,
    "terminate": 3,
    "freeze long": 5,  # longer than the session: a zombie wakes up
    "freeze short": 4,
    "wipe": 2,  # local state is deleted as well
    "scale": 1,  # to one worker and back
    "broker": 1,
    "lag": 2,  # all workers stand still for a while, then a rebalance meets the lag
    "retention": 1,  # all workers stand still, and retention deletes records that they have not read
}
OF_ALL = ("scale", "broker", "lag", "retention")

T = TypeVar("T")

LEAST = 3
LIFE_S = 20.0
STILL = 0.7
"""Share of a session for which workers may be frozen without losing it, even on a busy machine."""
DRAIN = signal.SIGUSR2  # ends a worker that will not come back: it leaves the group


@dataclass(frozen=True, slots=True)
class Frozen:
    """A worker that did not run for a while."""

    worker: Worker
    longer_than_session: bool
    began_ms: int
    woke_ms: int
    log_size: int  # size of its log at that time


class Faults:
    """Injects random faults until the time is over."""

    def __init__(
        self,
        fleet: Fleet,
        broker: EmbeddedBroker | EmbeddedCluster | None,
        session_s: float,
        seed: int,
        retention: Retention | None = None,
        of_brokers: BrokerFaults | None = None,
        kinds: Sequence[str] = (),
    ) -> None:
        """`broker` is None if it may not be restarted; `session_s` is the group's session timeout.

        `of_brokers` adds faults of the nodes of a cluster; `kinds`: those to draw from, default: all.
        """
        self._retention = retention
        self.done: Counter[str] = Counter()
        self.freezes: list[Frozen] = []
        self.outages: list[tuple[int, int]] = []  # outages of the broker, in ms since 1970
        self._waking: list[threading.Timer] = []
        self.times: list[tuple[str, float, float]] = []  # kind, begin and end of each (time.monotonic())
        self._fleet, self._broker, self._session = fleet, broker, session_s
        self._of_brokers = of_brokers
        self._kinds = kinds
        self._draw = random.Random(seed)
        self._doing: dict[str, Callable[[Worker], None]] = {
            "kill": self._kill,
            "terminate": self._terminate,
            "freeze long": lambda worker: self._freeze(worker, self._session * self._draw.uniform(1.1, 1.8)),
            "freeze short": lambda worker: self._freeze(worker, self._session * self._draw.uniform(0.1, 0.5)),
            "wipe": self._wipe,
            "scale": lambda _: self._scale(),
            "broker": self._in_an_outage(self._restart_broker),
            "lag": self._rebalance_under_lag,
            "retention": lambda _: self._overtake(),
            **{kind: self._in_an_outage(do) for kind, do in self._faults_of_brokers().items()},
        }

    def run(self, seconds: float) -> None:
        """Draw and inject faults for this long, then end those that last; other faults go on while a worker
        is frozen.

        On a slow machine this takes longer: a few faults are injected in any case.
        """
        end = time.monotonic() + seconds
        deck: list[str] = []
        while time.monotonic() < end or sum(self.done.values()) < LEAST:
            time.sleep(self._draw.uniform(0.2, 2.0))  # the time between two faults is a random choice
            deck = deck or self._shuffled()
            awake = [worker for worker in self._fleet.workers if not worker.frozen]
            self._do(deck.pop(), self._draw.choice(awake or self._fleet.workers))
            for worker in self._fleet.workers:
                worker.start()
        self._let_wake()

    def _let_wake(self) -> None:
        for waking in self._waking:
            waking.join()

    def _do(self, kind: str, worker: Worker) -> None:
        if kind not in (*OF_ALL, *self._faults_of_brokers()):
            if worker.frozen and kind.startswith("freeze"):
                return
            lives = kind == "freeze long" or (kind in ("kill", "wipe") and self._draw.random() < 0.5)
            if lives and not worker.frozen:
                await_life(worker)
            if not worker.runs:
                return
        if kind == "broker" and self._draw.random() < 0.5:
            self._let_wake()  # while the broker is away, no member is removed from the group
        began = time.monotonic()
        self._doing[kind](worker)
        self.done[kind] += 1
        self.times.append((kind, began, time.monotonic()))

    def _shuffled(self) -> list[str]:
        missing = {"broker": self._broker is None, "retention": self._retention is None}
        numbers = {**KINDS, **(broker_faults.KINDS if self._of_brokers else {})}
        kinds = [kind for kind in self._kinds or numbers if not missing.get(kind)]
        deck = [kind for kind in kinds for _ in range(numbers[kind])]
        self._draw.shuffle(deck)
        return deck

    def _kill(self, worker: Worker) -> None:
        worker.kill()

    def _terminate(self, worker: Worker) -> None:
        worker.signal(signal.SIGTERM)

    def _wipe(self, worker: Worker) -> None:
        worker.kill()
        shutil.rmtree(worker.state, ignore_errors=True)

    def _freeze(self, worker: Worker, seconds: float) -> None:
        began_ms, pid = time.time_ns() // 10**6, worker.pid
        worker.freeze(True)

        def wake() -> None:
            if worker.pid != pid or not worker.frozen:
                return  # it was killed while frozen
            woke_ms, long = time.time_ns() // 10**6, seconds > self._session
            self.freezes.append(Frozen(worker, long, began_ms, woke_ms, worker.log_size))
            worker.freeze(False)

        self._waking.append(threading.Timer(seconds, wake))
        self._waking[-1].start()

    def _scale(self) -> None:
        first, *others = self._fleet.workers
        first.start()
        for worker in others:
            worker.signal(DRAIN)
        time.sleep(self._session)  # one worker remains for this long, then the rest comes back

    def _stand_still(self, work: Callable[[float], T]) -> T:
        """Let all workers become live, freeze them until they lag, and call `work` before they wake up.

        `work` gets the time (time.monotonic()) by which it should be done, so that the sessions last.
        """
        self._let_wake()
        self._fleet.wait_until_ready()
        until = time.monotonic() + STILL * self._session
        for worker in self._fleet.workers:
            worker.freeze(True)
        try:
            time.sleep(self._session * self._draw.uniform(0.3, 0.5))  # shorter than the session
            return work(until)
        finally:
            for worker in self._fleet.workers:
                worker.freeze(False)

    def _rebalance_under_lag(self, worker: Worker) -> None:
        dies = self._draw.random() < 0.5
        self._stand_still(lambda _: worker.kill() if dies else worker.signal(DRAIN))

    def _overtake(self) -> None:
        assert self._retention is not None
        partition = self._stand_still(self._retention.overtake)
        if partition is not None:
            self._retention.wait_for_snapshot(partition)

    def _restart_broker(self) -> None:
        assert self._broker is not None
        self._broker.stop(kill=self._draw.random() < 0.5)
        time.sleep(self._draw.uniform(0.5, 3.0))
        self._broker.start()

    def _faults_of_brokers(self) -> Mapping[str, Callable[[], None]]:
        return {} if self._of_brokers is None else self._of_brokers.by_kind

    def _in_an_outage(self, fault: Callable[[], None]) -> Callable[[Worker], None]:
        def do(_: Worker) -> None:
            began_ms = time.time_ns() // 10**6
            fault()
            self.outages.append((began_ms, time.time_ns() // 10**6))

        return do


def await_life(worker: Worker) -> None:
    """Return when a worker has live partitions to lose, or after a while."""
    with contextlib.suppress(ChaosError):
        wait_until(worker.is_ready, LIFE_S, lambda: worker.name)
