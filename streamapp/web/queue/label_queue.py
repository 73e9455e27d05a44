"""Label queue: open requests, leases, answers and their undo window. No clock, no broker, no page.

A request is open from the moment it was read until its answer is known. The answer is ours, when the
broker has it, or another sender's on the topic. For each request at most one answer of ours is on its way.

    open ── answer ──▶ waiting ── undo window over ──▶ sending ── broker has it ──▶ sent
      ▲                  │  └─ answer of another sender ─▶ overtaken  │
      └───── undo ───────┘                          process died ──▶ doubt ──▶ sent, or sending again

After a restart, an answer in doubt waits until all earlier answers on the topic are read; if it is among
them, it was sent. If several annotators answer (`Terms.agree`, `Terms.overlap`), their answers are votes,
and the answer is made of the votes (`agreement.py`).

Each duty has a part: `topics` stores what was read, `leases` chooses cards, `actions` takes answers, and
`outbox` has the answers that are sent. `overview` counts for the start page, `reviews` is for reviewers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from streamapp.web.annotation_terms import Terms
from streamapp.web.queue.annotator_actions import AnnotatorActions
from streamapp.web.queue.cards import Card, Counts, Refused
from streamapp.web.queue.leases import AHEAD, Leases
from streamapp.web.queue.outbox import Outbox
from streamapp.web.queue.overview import Overview
from streamapp.web.queue.review.adjudication import Adjudication
from streamapp.web.queue.topic_state import TopicState
from streamapp.web.store import Store


class Turn(NamedTuple):
    """The result of an action, and the annotator's state after it."""

    refused: str  # why the action was refused; "": it was carried out
    card: Card | None  # the card on display
    ahead: Card | None  # the card after it, unless an annotator without a card takes it
    undoable_ms: int


class LabelQueue:
    """Requests, leases and answers; every change is one transaction of the store.

    `now` is the time in ms since the epoch. One process has the store; any thread may call.
    """

    def __init__(
        self, store: Store, terms: Terms | None = None, paused: Callable[[str], str] = lambda _: ""
    ) -> None:
        """Open the queue; answers that an earlier process was sending are in doubt.

        paused: why an annotator gets no cards for now; "": they get cards.
        """
        self.terms = terms = terms or Terms()
        self._store = store
        self.topics = TopicState(store, terms)
        self.leases = Leases(store, terms, paused)
        self.actions = AnnotatorActions(store, terms, self.leases)
        self.outbox = Outbox(store, terms)
        self.overview = Overview(store)
        self.reviews = Adjudication(store, terms)
        with store.transaction() as db:
            db.execute("UPDATE answer SET state = 'doubt' WHERE state = 'sending'")
            rows = db.execute(
                "SELECT number, request_id, needed FROM request WHERE kind = 'label'"
            ).fetchall()
            db.executemany(
                "UPDATE request SET needed = ? WHERE number = ?",
                [(terms.needed(id_), number) for number, id_, n in rows if n != terms.needed(id_)],
            )

    def act(self, annotator: str, action: Callable[[], Card | None], now: int) -> Turn:
        """Carry out an action and lease the next card in one transaction, with one wait for the disk."""
        refused, card = "", None
        with self._store.transaction():
            try:
                card = action()
            except Refused as reason:
                refused = str(reason)
            card = card or self.leases.next_card(annotator, now)
            ahead = self.leases.card_ahead(annotator, now)
            return Turn(refused, card, ahead, self.actions.undoable_ms(annotator, now))

    def looked_at(self, annotator: str, number: int | None, now: int) -> tuple[bool, int]:
        """Return whether the annotator still has a request, and the ms left to undo the last answer."""
        has_it = number is not None and self.leases.holds(annotator, number)
        return has_it, self.actions.undoable_ms(annotator, now)

    def counts(self, now: int) -> Counts:
        """Return how many requests and answers are in each state."""
        with self._store.reading() as db:
            tally = dict(db.execute("SELECT name, n FROM tally"))
            (leased,) = db.execute(
                "SELECT count(*) FROM lease WHERE until_ms > ? AND several <> ?", (now, AHEAD)
            ).fetchone()
            (dropped,) = db.execute("SELECT sum(next) FROM position WHERE topic = 'dropped'").fetchone()
            (answered,) = db.execute(
                "SELECT count(*) FROM answer WHERE request IS NOT NULL AND kind <> 'gold'"
            ).fetchone()
        under_way = sum(tally[state] for state in ("waiting", "sending", "doubt"))
        return Counts(
            tally["request"] - answered,
            leased,
            under_way,
            tally["sent"],
            tally["overtaken"],
            dropped or 0,
        )
