"""Writes the store of ``grove web`` after a story of annotators: ``python -m tests.golden.web_story``.

``web-story-<version>.sql`` has rows in every table of the format, most of which only the queue itself can
write. The file of a released format was written by that release and stays.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

from streamapp.web.annotation_terms import Terms
from streamapp.web.audit_log import AuditLog
from streamapp.web.queue.cards import Attribute, Given, Label, Values
from streamapp.web.queue.closed_classes import ClassControl
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.quality.gold_file import GoldRecord
from streamapp.web.store import VERSION, Store
from tests.unit.streamapp.web.queue.requests import NOW, WANTED, ask, named

HERE: Final = Path(__file__).parent
TERMS: Final = Terms(lease_ms=1_000, undo_ms=100, open_max=100, jump_ms=100_000, agree=3, gold_share=0.1)
DAY: Final = NOW + 2_000
TOKEN: Final = "0123456789abcdef"
CHANCE: Final = {"identity": ("name",), "audit": ("number", "id", "entry"), "outcome": ("number", "id")}
"""Columns of tables that differ from one run of the story to the next."""


class Office:
    """A queue with its store, and the topic `audit` as its records come back."""

    def __init__(self, store: Store) -> None:
        self.store, self.log = store, AuditLog(store)
        self.queue = LabelQueue(store, TERMS)

    def vote(self, name: str, now: int, **votes: str | None) -> None:
        """Request a label, and let these people answer it."""
        ask(self.queue, named(name))
        for annotator, label in votes.items():
            self.take(annotator, name, label, now)

    def take(self, annotator: str, name: str, label: str | None, now: int) -> None:
        """Answer the cards that an annotator gets up to an instance, gold questions on the way as well."""
        while True:
            card = self.queue.leases.next_card(annotator, now)
            assert card is not None, f"{annotator} has no card, and not {name}"
            self.queue.actions.answer(annotator, card.number, label, now, new_class=True)
            if card.instance_id == name:
                return

    def send(self, now: int) -> None:
        """Send the answers that are due, and read the audit entries that the broker got."""
        going = self.queue.outbox.due(now)
        self.queue.outbox.sent(going, now)
        waiting = self.log.waiting()
        self.log.sent([number for number, _ in waiting])
        self.queue.topics.apply([], [], {}, now, audit=[entry for _, entry in waiting])


def tell(store: Store) -> Office:
    """Let annotators and a reviewer work; return the queue at the end of the story."""
    office = Office(store)
    queue = office.queue
    queue.topics.begin({"cluster": "c", "t.label-requests": "id"})
    queue.topics.keep_gold([GoldRecord("k", f"gold-{n}", "ab"[n % 2], {"x": float(n)}) for n in range(3)])
    control = ClassControl("k", "create", NOW - 9, has_schema=True, classes=("a", "b"))
    queue.topics.apply(
        [], [], {}, NOW, [("k", "c")], attributes=[Attribute("k", "age", "numeric", ())], controls=[control]
    )
    for n in range(4):  # gold questions come between them
        office.vote(f"same-{n}", NOW, ann="a", bob="a", cy="a")
    office.send(NOW + 100)
    office.vote("corrected", NOW + 200, ann="a", bob="b", cy="a")
    office.send(NOW + 300)
    (item,) = queue.reviews.open_items("oldest", 0, 9)
    queue.reviews.decide("rev", item, "b", NOW + 400)
    office.send(NOW + 500)
    office.vote("disputed", NOW + 600, ann="a", bob="b", cy="a")
    office.send(NOW + 700)
    queue.topics.apply([], [Label("k", "elsewhere", "a", "oracle", NOW)], {}, NOW + 700)
    office.vote("on its way", NOW + 750, ann="a", bob="a", cy="a")
    queue.outbox.due(NOW + 860)  # the broker does not answer any more
    office.vote("in its undo window", NOW + 900, ann="a", bob="a", cy="a")
    office.vote("half", NOW + 900, ann="b")
    ask(queue, WANTED)
    queue.topics.apply([], [], {}, NOW + 700, values=[Values("k", "known", Given({"age": 4.0}), NOW)])
    ask(queue, named("skipped"))
    card = queue.leases.next_card("dan", NOW + 950)
    assert card is not None
    queue.actions.skip("dan", card.number, NOW + 950)
    with store.transaction() as db:
        digest = hashlib.sha256(TOKEN.encode()).digest()
        db.execute("INSERT INTO session VALUES (?, 'ann', ?, 'proof')", (digest, DAY))
    queue.leases.next_card("eve", NOW + 1_000)
    return office


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of each table, without the columns of `CHANCE`."""
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = {}
        for name in sorted(names):
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
            kept = [column for column in columns if column not in CHANCE.get(name, ())]
            chosen = ", ".join(kept) or "1"
            tables[name] = sorted(db.execute(f"SELECT {chosen} FROM {name}").fetchall(), key=repr)
        return tables


def main() -> None:
    """Write the file of now."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "web.sqlite"
        with closing(Store(path)) as store:
            tell(store)
        with closing(sqlite3.connect(path)) as db:
            text = "\n".join(db.iterdump()) + "\n"
        for name, rows in rows_of(path).items():
            print(name, len(rows))
        (HERE / f"web-story-{VERSION}.sql").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
