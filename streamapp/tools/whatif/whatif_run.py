"""The comparison of one partition, from its replays to the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from streamapp.tools.offline.errors import OfflineError
from streamapp.tools.offline.time_travel import Departure
from streamapp.tools.whatif.comparison import Comparison
from streamapp.tools.whatif.sent_answers import SentAnswers
from streamapp.tools.whatif.whatif_report import Span, document, iso_time
from streamapp.worker.restore.journal_replay import Process
from streamapp.worker.task.sources import positions_of
from streamapp.worker.task.task import Task
from topics.columns.records import RawRecords


class Stored(Protocol):
    """A partition whose log can be replayed."""

    number: int

    def depart(self, offset: int | None, process: Process = Task.process) -> Departure:
        """Return a replay right before a record of instances (None: at the earliest point)."""

    def go_on(self, departure: Departure) -> None:
        """Replay the rest of the journal."""

    def offset_at(self, timestamp: int) -> int:
        """Return the offset of the first record of instances at a time (ms) or after it."""

    def predictions_since(self, timestamp: int) -> Iterator[RawRecords]:
        """Yield the predictions from a timestamp on."""


def whatif(stored: Stored, key: str, spec: str, since: int | None = None) -> dict[str, Any]:
    """Return the report on the log of a model under another spec; arguments and errors as of `compare`."""
    comparison, span = compare(stored, key, spec, since)
    return document(comparison, stored.number, span)


def compare(stored: Stored, key: str, spec: str, since: int | None = None) -> tuple[Comparison, Span]:
    """Replay the log of a model as it was and under another spec.

    `spec`: JSON or a preset's name; `since`: time of the first record (ms), None: the earliest point that can
    be rebuilt. Raise OfflineError or GroveError if there is nothing to compare.
    """
    comparison = Comparison(key, spec, SentAnswers(key.encode(), stored.predictions_since))
    departure, second = _departures(stored, comparison, since)
    start = departure.entries[0].before if departure.entries else positions_of({})
    comparison.start(second.replay.task)
    stored.go_on(departure)
    comparison.end()
    assert departure.replay.positions is not None
    return comparison, Span(departure.base, since, start, departure.replay.positions)


def _departures(stored: Stored, comparison: Comparison, since: int | None) -> tuple[Departure, Departure]:
    """Return two replays at the beginning; the first one lets the comparison process its runs."""
    if since is None:
        return stored.depart(None, comparison.process), stored.depart(None)
    offset = stored.offset_at(since)
    try:
        return stored.depart(offset, comparison.process), stored.depart(offset)
    except OfflineError as error:
        message = (
            f"--since {iso_time(since)} begins at instances {stored.number}:{offset}: {error}; choose "
            "another time, or leave --since out to begin as early as journal and snapshots reach"
        )
        raise OfflineError(message) from error
