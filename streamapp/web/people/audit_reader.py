"""Audit reader: fills the people store from the topic of audit entries, and pauses people by the rule.

The topic is read from its beginning if nothing is stored. The entries of this process come back through the
topic, too, so that several processes have the same figures and the same people are paused in all of them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from streamapp.people.pauses import PAUSE, USER, PauseRule
from streamapp.people.people_store import PeopleStore
from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.topic_reader import Positions, Runs, TopicReader
from topics.codecs import decode_audit
from topics.columns.records import AuditEntry
from topics.definitions import TopicNames

TIDY_S: Final = 600.0


class AuditReader(TopicReader):
    """Fills the people store; `run` in one thread, `stop` from any."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        names: TopicNames,
        people: PeopleStore,
        audit: AuditLog,
        rule: PauseRule | None = None,
    ) -> None:
        """Connect to the broker; rule: people whom it names are paused by an entry in the audit log."""
        self._people, self._audit, self._rule = people, audit, rule
        self._unread: set[int] = set()  # partitions that are not read to their end
        self._asked: set[str] = set()  # people whose pause is in the log and has not come back
        self._tidied = time.monotonic()
        super().__init__(kafka, names.prefix, (names.audit,))
        self._unread = set(range(self._partitions))

    def _begin(self, origin: dict[str, str]) -> bool:
        return self._people.begin(origin)

    def _stored(self, topic: str) -> Mapping[int, int]:
        return self._people.positions(topic)

    def _ends(self, topic: str, partition: int, offset: int) -> None:  # noqa: ARG002 - of the base class
        self._unread.discard(partition)

    def _store(self, runs: Runs, positions: Positions) -> None:
        entries = [
            entry
            for messages in runs.values()
            for entry in decode_audit([message.value() or b"" for message in messages])
            if isinstance(entry, AuditEntry)
        ]
        self._people.apply(entries, positions)
        self._asked -= {entry.annotator for entry in entries if isinstance(entry.annotator, str)}

    def _between(self) -> None:
        if self._unread:
            return
        if self._rule is not None and not self._asked:
            for low in self._people.to_pause(self._rule):
                self._asked.add(low.annotator)
                self._audit.note_about(low.annotator, USER, PAUSE, self._time(low.annotator), low.reason)
        if time.monotonic() - self._tidied >= TIDY_S:
            self._tidied = time.monotonic()
            self._people.tidy(now_ms())

    def _time(self, annotator: str) -> int:
        return after(self._people, annotator, now_ms())


def after(people: PeopleStore, annotator: str, now: int) -> int:
    """Return a time after the last pause or resumption of a person, even if the clock was set back."""
    state = people.pause_states.get(annotator)
    return now if state is None else max(now, state.at_ms + 1)
