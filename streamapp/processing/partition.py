"""Partition: a task of this worker, its ledger, and the group membership its offsets are committed with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamapp.journal.entry import Skip
from streamapp.journal.ledger import Ledger
from streamapp.task.sources import Positions
from streamapp.transport.thread import Membership


@dataclass(slots=True)
class Partition:
    """A partition whose task lives here."""

    task: Any
    ledger: Ledger
    committed: Positions
    membership: Membership | None  # as whom it was restored: with no other may its offsets be committed
    topic_ids: Mapping[str, str]  # of the sources whose records it processes
    skips: tuple[Skip, ...] = ()  # records of it that are to become dead letters, passed ones too
    live: bool = False  # its records are being fetched
    stopped: str | None = None  # why its processing was stopped for good
