"""Dead letter answers: the same as `grove dlq` lists, shows, replays and skips."""

from __future__ import annotations

import heapq
from typing import Any, Final, cast

from streamapp.errors import UsageError
from streamapp.tools.dead_letters import skip as skipping
from streamapp.tools.dead_letters.find import DeadLetterFilter, DeadLetterLog
from streamapp.tools.dead_letters.read import document_of, row_of
from streamapp.tools.offline.installation import Installation
from streamapp.tools.offline.place import Place
from streamapp.worker.task.sources import SOURCES, SourceName

TEXT_MAX: Final = 4096
"""Characters of a value, header or stack trace that are shown."""


class DeadLetterAnswers:
    """Dead letters of an installation."""

    def __init__(self, place: Installation) -> None:
        self._place = place

    def listed(self, limit: int, reason: str | None = None, key: str | None = None) -> dict[str, Any]:
        """Return the newest `limit` dead letters, newest first, and the number of dead letters by reason."""
        reasons: dict[str, int] = {}
        newest: list[tuple[int, int, int, dict[str, Any]]] = []
        for letter in self._log().read(DeadLetterFilter((reason,) if reason else (), key)):
            name = letter.reason or "?"
            reasons[name] = reasons.get(name, 0) + 1
            entry = (letter.timestamp, letter.partition, letter.offset, _cut(row_of(letter)))
            if len(newest) < limit:
                heapq.heappush(newest, entry)
            else:
                heapq.heappushpop(newest, entry)
        return {"reasons": reasons, "rows": [entry[-1] for entry in sorted(newest, reverse=True)]}

    def shown(self, at: str) -> dict[str, Any]:
        """Return all parts of the dead letter at `PARTITION:OFFSET` of their topic."""
        letter = self._log().one(Place.parse(at, "PARTITION:OFFSET", "dead-letters"))
        document: dict[str, Any] = _cut(document_of(letter))
        return document

    def replayed(
        self, at: str | None = None, reason: str | None = None, key: str | None = None, *, dry_run: bool
    ) -> dict[str, Any]:
        """Send dead letters to their topics again; dry_run: only count which would go and which would not."""
        place = None if at is None else Place.parse(at, "PARTITION:OFFSET", "dead-letters")
        selection = DeadLetterFilter((reason,) if reason else (), key, place)
        returned = self._log().send_back(selection, dry_run=dry_run)
        return {"sent": dict(returned.sent), "left": dict(returned.left)}

    def skipped(self, at: str, source: str, *, dry_run: bool) -> dict[str, Any]:
        """Make the record at `PARTITION:OFFSET` of a source a dead letter without processing it.

        No worker may run at the same time. dry_run: only describe the record.
        """
        if source not in SOURCES:
            message = f"source={source!r} must be one of {', '.join(SOURCES)}"
            raise UsageError(message)
        name = cast("SourceName", source)
        position, place = Place.parse(at, "PARTITION:OFFSET", name), self._place
        place.check(position.partition)
        record = skipping.find(
            place.kafka, place.group, place.names, position.partition, name, position.offset
        )
        if not dry_run:
            skipping.skip(place.kafka, place.group, place.names, record)
        key = None if record.key is None else record.key.decode("utf-8", "replace")
        return {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.skip.offset,
            "key": key,
            "bytes": record.size,
            "next": record.next,
            "already": record.already,
        }

    def _log(self) -> DeadLetterLog:
        return DeadLetterLog(self._place.kafka, f"{self._place.group}-dlq", self._place.names)


def _cut(value: Any) -> Any:
    """Return a document whose texts are cut to TEXT_MAX characters."""
    if isinstance(value, str):
        return value if len(value) <= TEXT_MAX else f"{value[:TEXT_MAX]}…"
    if isinstance(value, dict):
        return {name: _cut(member) for name, member in value.items()}
    return [_cut(member) for member in value] if isinstance(value, list) else value
