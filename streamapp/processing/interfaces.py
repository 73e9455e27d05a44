"""Interfaces of the task manager: tasks and outputs, transactions, restores, the driver's consumer."""

from __future__ import annotations

from typing import Any, Protocol

from streamapp.journal.entry import Step
from streamapp.processing.commit_schedule import Outputs
from streamapp.processing.transactions import Transaction
from streamapp.restore.rebuild import Restored, RestoreRequest
from streamapp.snapshots.writer import TaskCut
from streamapp.transport.runs import Run
from streamapp.transport.thread import Membership


class Processor(Outputs, Protocol):
    """What turns runs into outputs: tasks, codecs, outbox."""

    @property
    def config(self) -> str:
        """The configuration of tasks, as the journal has it."""

    def new_task(self, partition: int) -> Any:
        """Return a task with new models."""

    def cut_task(self, task: Any) -> TaskCut:
        """Return a task as it is now, for a snapshot."""

    def adopt_task(self, task: Any) -> None:
        """Make a restored task one of this worker's."""

    def advance(self, task: Any, topic: str, position: int) -> None:
        """Tell a task that a topic has no record left before a position."""

    def drop_task(self, task: Any) -> None:
        """Give up a task."""

    async def ready(self, task: Any, run: Run) -> None:
        """Return when a run can be computed without waiting for a disk."""

    def compute(self, task: Any, run: Run) -> Any:
        """Return the effects of a run; raise what our own code does wrong."""

    @property
    def journal_bytes(self) -> int:
        """The largest record that the journal takes."""

    def step(self, run: Run, effects: Any) -> Step:
        """Return what the journal has to say of a run."""


class Transactions(Protocol):
    """Where cuts are committed. Every method waits for the broker."""

    @property
    def call(self) -> int | None:
        """The number of the call of the client that a method waits for."""

    def open(self) -> None:
        """Make sure that no predecessor of ours has a transaction open."""

    def commit(self, transaction: Transaction) -> None:
        """Commit a transaction; AbortedError if that cannot be."""

    def abort(self) -> None:
        """Throw away what was sent since the last commit."""


class Restorer(Protocol):
    """Where the state of a partition comes from. Waits for the broker."""

    def restore(self, wanted: RestoreRequest) -> Restored:
        """Return the task of a partition, or that the task that is here may stay."""


class Source(Protocol):
    """The driver's consumer, as far as it is needed here."""

    membership: Membership | None
    epoch: int

    @property
    def broker_reachable(self) -> bool:
        """Whether the broker answers, as far as is known."""

    def abandon(self) -> None:
        """Forget what was fetched."""

    def drop(self, partition: int) -> None:
        """Stop fetching one partition."""

    async def rejoin(self) -> None:
        """Join the group anew."""

    async def crash(self, reason: BaseException) -> None:
        """End the worker."""
