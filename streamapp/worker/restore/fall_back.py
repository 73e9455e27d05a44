"""Falling back: a partition whose journal cannot be replayed continues from its newest whole snapshot.

Everything that the models learned since that snapshot is lost. Committed records are not read again. The
journal gets a reset and, after it, the record of that snapshot once more, with the committed offsets as its
positions: restores and further entries of the journal begin there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from streamapp.worker.journal.entry import Manifest, Record, Reset
from streamapp.worker.restore.changelog import Changelog
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.identity import Identity
from streamapp.worker.restore.journal_replay import Replay, SourceLog
from streamapp.worker.restore.journal_write import write_together
from streamapp.worker.restore.log_reader import LogReader
from streamapp.worker.restore.reset import (
    ResetError,
    check_group_is_empty,
    check_group_stayed_empty,
    starting_point,
)
from streamapp.worker.restore.tail import TailReader
from streamapp.worker.snapshots.chunks import DamagedError
from streamapp.worker.snapshots.stored import Get
from streamapp.worker.task.sources import Positions, SourceName
from topics.definitions import TopicNames


class FellBack(NamedTuple):
    """The state with which a partition continues."""

    snapshot: Positions  # at which the snapshot was cut
    positions: Positions  # from which records are read next


def fall_back(kafka: Mapping[str, Any], group: str, names: TopicNames, partition: int) -> FellBack:
    """Let a partition continue from its newest whole snapshot; ResetError if there is none.

    If only its committed offsets are lost, it continues where its journal ends.
    """
    check_group_is_empty(kafka, group)
    with (
        LogReader(kafka, group, lambda: False) as reader,
        LogReader(kafka, group, lambda: False) as parts,
    ):
        positions, incarnation, is_end, skips = starting_point(reader, Identity(kafka), names, partition)
        if is_end:  # only the offsets were gone: a worker can replay all of the journal
            return FellBack(positions, positions)
        tails = TailReader(reader.of(names.journal, partition), names.journal, partition)
        get = Changelog(parts, names.snapshots, partition).get  # the chunks that a worker would find
        try:
            manifest = newest_whole(tails, get, partition)
        except RestoreError as error:
            message = f"partition {partition}: {error.reason}"
            raise ResetError(message) from error
        end = reader.of(names.journal, partition).range()[1]
    records = [*restarted_from(manifest, incarnation, positions, end), *skips]
    write_together(kafka, group, names.journal, partition, records)  # the reset alone means new models
    check_group_stayed_empty(kafka, group, names, partition)
    return FellBack(manifest.positions, positions)


def restarted_from(manifest: Manifest, incarnation: int, positions: Positions, start: int) -> list[Record]:
    """Return the records that make a snapshot the state at other positions, from offset `start` on."""
    return [Reset(incarnation, positions), replace(manifest, positions=positions, start=start)]


def newest_whole(tails: TailReader, get: Get, partition: int) -> Manifest:
    """Return the newest snapshot from which a task can be made; ResetError if there is none."""
    damaged: list[str] = []
    for base in tails.since(0).bases:
        if isinstance(base, Manifest):
            try:
                replay = Replay(partition, _no_log)
                replay.begin_at(base, get)
            except DamagedError as error:
                damaged.append(str(error))
            else:
                if replay.task is not None:
                    replay.task.close()
                return base
    why = f" ({'; '.join(damaged)})" if damaged else ""
    message = (
        f"partition {partition} has no whole snapshot{why}; 'grove models reset --partition {partition}' "
        "gives it new models"
    )
    raise ResetError(message)


def _no_log(source: SourceName, position: int) -> SourceLog:
    message = f"nothing is replayed, {source} need not be read from {position} on"
    raise AssertionError(message)
