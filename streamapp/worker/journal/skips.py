"""Skips: which records of a partition an operator has skipped, ahead of its positions and in a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streamapp.worker.journal.entry import Skip
from streamapp.worker.task.sources import Positions, SourceName


def outstanding(
    skips: Iterable[Skip], positions: Positions, topic_ids: Mapping[SourceName, str] | None = None
) -> tuple[Skip, ...]:
    """Return the skips that lie ahead of positions, each once.

    `topic_ids`: current ids of the sources' topics ("": not known; None: unchanged). A skip of a topic that
    was created again since does not apply to its new records.
    """
    ahead = {
        (skip.source, skip.offset): skip
        for skip in skips
        if skip.offset >= positions[skip.source]
        and (topic_ids is None or _is_of(skip, topic_ids[skip.source]))
    }
    return tuple(ahead.values())


def offsets_to_skip(skips: Iterable[Skip], source: SourceName, offsets: Sequence[int]) -> frozenset[int]:
    """Return which offsets of a run of a source are to be skipped."""
    return frozenset(skip.offset for skip in skips if skip.source == source).intersection(offsets)


def _is_of(skip: Skip, topic_id: str) -> bool:
    return "" in (skip.topic_id, topic_id) or skip.topic_id == topic_id
