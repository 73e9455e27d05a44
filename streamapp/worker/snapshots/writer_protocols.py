"""Protocols of the snapshot writer: a task that was cut, the table of chunks, and the journal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

from streamapp.worker.snapshots.snapshot_table import Chunks
from streamapp.worker.task.models.files.model_unit import LargeModel
from streamapp.worker.task.unit import Unit, UnitName


class TaskCut(Protocol):
    """A task as it was at a cut."""

    @property
    def state_version(self) -> int:
        """The oldest state version whose releases can go on with the task."""

    @property
    def removed(self) -> Collection[UnitName]:
        """Units that were in the previous cut and no longer exist; complete once all units are made."""

    def pieces(self) -> Iterator[Unit | LargeModel]:
        """Yield the changes since the previous cut, in pieces of bounded work."""

    def keep(self, unit: Unit) -> bool:
        """Count the unit of a large model as part of the cut; return whether it has to be stored."""

    def done(self) -> None:
        """Count everything as stored."""

    def abandon(self) -> None:
        """Count the contents of the cut as changed again."""


class Table(Protocol):
    """The store of chunks (`streamapp/worker/snapshots/snapshot_table.py`)."""

    def chunks(self, partition: int) -> Chunks:
        """Return the chunks of a partition that is here."""

    def failure(self) -> str:
        """Return why the disk does not take everything, empty if it does; any thread may call this."""

    async def write(self, partition: int, items: Any) -> None:
        """Write values; return when they are acknowledged."""

    async def remove(self, partition: int, keys: Sequence[bytes]) -> None:
        """Remove keys."""


class Journal(Protocol):
    """The journal's log. All methods wait for the broker."""

    def end(self, partition: int) -> int:
        """Return a lower bound of the offsets of later records."""

    def trim(self, partition: int, before: int) -> None:
        """Delete the records before an offset."""
