"""State of the topics: what was read of them, stored with the positions to go on from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamapp.web.annotation_terms import Terms
from streamapp.web.queue import expiry, intake
from streamapp.web.queue.cards import Attribute, Label, Request, Values
from streamapp.web.queue.closed_classes import ClassControl
from streamapp.web.queue.quality import annotator_models, gold_questions
from streamapp.web.queue.quality.gold_file import GoldRecord
from streamapp.web.queue.review import reviewed_outcomes
from streamapp.web.store import Store
from topics.columns.records import AuditEntry


class TopicState:
    """Requests and answers as they were read, and positions."""

    def __init__(self, store: Store, terms: Terms) -> None:
        self._store, self._terms = store, terms
        with store.reading() as db:
            (self._name,) = db.execute("SELECT name FROM identity").fetchone()

    def keep_gold(self, records: Sequence[GoldRecord]) -> None:
        """Make these the records of the gold file."""
        with self._store.transaction() as db:
            gold_questions.replace_file(db, records)

    def positions(self, topic: str) -> dict[int, int]:
        """Return partition → offset of the next record to read, for the partitions that were read before."""
        with self._store.reading() as db:
            return dict(db.execute("SELECT partition, next FROM position WHERE topic = ?", (topic,)))

    def begin(self, origin: Mapping[str, str]) -> bool:
        """Store the identities of the topics; return True if they have changed and the queue was emptied.

        A topic that did not exist before does not make the rest other topics.
        """
        with self._store.transaction() as db:
            before = dict(db.execute("SELECT name, value FROM origin"))
            if before == dict(origin):
                return False
            others = any(origin.get(name) != value for name, value in before.items())
            if others:
                intake.forget(db)
            db.executemany("INSERT OR REPLACE INTO origin VALUES (?, ?)", list(origin.items()))
            return others

    def apply(
        self,
        requests: Sequence[Request],
        labels: Sequence[Label],
        positions: Mapping[tuple[str, int], int],
        now: int,
        classes: Sequence[tuple[str, str]] = (),
        values: Sequence[Values] = (),
        attributes: Sequence[Attribute] = (),
        controls: Sequence[ClassControl] = (),
        audit: Sequence[AuditEntry] = (),
    ) -> None:
        """Store what was read, with the next offsets.

        The order in which records come makes no difference, except for the controls of one key and the
        entries of one user. `classes`: model key and class name.
        """
        with self._store.transaction(durable=False) as db:  # not durable: the topics have the records
            intake.take_labels(db, labels, now)
            intake.take_values(db, values, now)
            intake.open_requests(db, requests, self._terms.needed)
            intake.widen_ranges(db, requests)
            names = {(label.key, label.label) for label in labels if label.label is not None}
            intake.take_answered(db, requests)
            intake.take_class_controls(db, controls)
            intake.take_names(db, {*names, *classes}, attributes)
            annotator_models.take(db, audit)
            gold_questions.recall(db, audit, self._name)
            reviewed_outcomes.take(db, self._terms, audit)
            intake.next_offsets(db, positions)

    def tidy(self, now: int) -> None:
        """Delete what has expired, the requests above the limit, and entries that are too old to matter."""
        with self._store.transaction() as db:
            expiry.tidy(db, self._terms, now)
