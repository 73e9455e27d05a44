"""Review page: outcomes on which annotators disagree, one at a time, and the decisions of a reviewer."""

from __future__ import annotations

import asyncio
import html
from typing import Any, Final

from nicegui import ui

from streamapp.web.clock import now_ms
from streamapp.web.formatting import span
from streamapp.web.page_frame import Person, frame
from streamapp.web.pages.review.answer_words import CommentField
from streamapp.web.pages.surroundings import NOT_DONE, TOO_FAST, Messages, Surroundings, why_not_done
from streamapp.web.queue.cards import Card
from streamapp.web.queue.review.adjudication import Effect, Item, Order
from streamapp.web.wording import features_table

KEYS: Final = "1234567890abcdefghijklmnopqrtuvwyz"
LATER, DECLINE = "s", "x"
UNSEEN_MS: Final = 250
"""A key pressed this soon after an outcome appears was meant for the one before it."""
REVIEWED: Final = 10
ORDERS: Final[dict[Order, str]] = {"oldest": "Oldest first", "least sure": "Least sure first"}
NOTHING: Final = "No outcome waits for a review."
WHEN: Final = (
    "An outcome comes here if annotators gave a request different classes, or if its label is not certain "
    "enough. Several annotators answer requests with --agree or --overlap."
)
_EFFECTS: Final[dict[Effect, str]] = {
    "kept": "the label stays as it is",
    "replaced": "the label had not been sent, and is sent with this class",
    "corrected": "the label had been sent, and a correction follows",
    "noted": "the record is no longer known here, so no correction is sent",
}


class ReviewPage:
    """The elements of the page in one browser."""

    def __init__(self, around: Surroundings, person: Person) -> None:
        """Make the elements; the first tick shows an outcome."""
        self._around, self._reviews, self._person = around, around.queue.reviews, person
        self._item: Item | None = None
        self._skipped = 0  # outcomes of the present order that the reviewer left for later
        self._shown_ms = 0
        self._again: list[Item] = []
        with frame("/review", person, has_users=around.has_users):
            self._messages = Messages(around)
            ui.label("Review").props("role=heading aria-level=1").classes("text-h5")
            with ui.row().classes("items-center w-full"):
                self._count = ui.label().props("role=status")
                self._order = ui.select(ORDERS, value="oldest", on_change=self._reorder)
                self._order.props('aria-label="Order" dense outlined').classes("grove-select")
            self._make()
        ui.keyboard(on_key=self._key, repeating=False, ignore=["input", "select", "textarea"])
        ui.timer(1.0, self.tick)
        ui.timer(0.0, self.tick, once=True)

    def _make(self) -> None:
        self._heading = ui.label(NOTHING).props("role=heading aria-level=2").classes("text-h6 grove-text")
        self._when = ui.label(WHEN)
        with ui.column().classes("w-full") as self._of_item:
            self._outcome = ui.label().classes("grove-text")
            self._record = ui.html(sanitize=False).classes("w-full")
            self._votes = ui.html(sanitize=False).classes("w-full")
            self._buttons = ui.row().classes("w-full").props('role=group aria-label="Classes"')
            with ui.row().classes("items-center w-full"):
                self._field = ui.input("Another class").props('maxlength=1024 aria-label="Another class"')
                ui.button("Decide for it", on_click=self._decide_new).props("no-caps outline")
            self._comment = CommentField(self._around.queue.terms)
            with ui.row():
                no_class = ui.button(f"No class ({DECLINE})", on_click=lambda: self.decide(None))
                no_class.props("no-caps outline")
                ui.button(f"Later ({LATER})", on_click=self.later).props("no-caps outline")
        self._of_item.set_visibility(False)
        with ui.element("section").classes("w-full") as self._of_reviewed:
            ui.label("Reviewed lately").props("role=heading aria-level=2").classes("text-h6")
            self._reviewed = ui.column().classes("w-full")
        self._of_reviewed.set_visibility(False)

    async def tick(self) -> None:
        """Look for an outcome if there is none; show how many wait."""
        if not self._messages.tick(self._person):
            return
        count = await asyncio.to_thread(self._reviews.count_open)
        if count is None:  # the application ends
            return
        self._count.set_text(f"{count:,} wait for a review")
        if self._item is None:
            await self._next()

    async def _next(self) -> None:
        items = await asyncio.to_thread(self._reviews.open_items, self._order.value, self._skipped, 1)
        if not items and self._skipped:
            self._skipped = 0
            items = await asyncio.to_thread(self._reviews.open_items, self._order.value, 0, 1)
        self._show(items[0] if items else None)
        reviewed = await asyncio.to_thread(self._reviews.reviewed_items, REVIEWED)
        if reviewed != self._again:
            self._again = reviewed or []
            self._draw_reviewed()

    def _show(self, item: Item | None) -> None:
        self._item, self._shown_ms = item, now_ms()
        self._of_item.set_visibility(item is not None)
        self._when.set_visibility(item is None)
        if item is None:
            self._heading.set_text(NOTHING)
            return
        self._heading.set_text(f"{item.key}: which class has {item.instance_id}?")
        self._outcome.set_text(outcome_in_words(item, now_ms()))
        self._votes.set_content(votes_table(item))
        self._record.set_content(record_table(item, self._around.units))
        self._field.set_value("")
        self._comment.clear()
        self._buttons.clear()
        with self._buttons:
            for place, name in enumerate(item.classes):
                key = f" ({KEYS[place]})" if place < len(KEYS) else ""
                button = ui.button(f"{name}{key}", on_click=lambda _, name=name: self.decide(name))
                button.props("no-caps").classes("grove-text")

    def _draw_reviewed(self) -> None:
        self._of_reviewed.set_visibility(bool(self._again))
        self._reviewed.clear()
        with self._reviewed:
            for item in self._again:
                with ui.row().classes("items-center w-full"):
                    ui.label(decision_in_words(item, now_ms())).classes("grove-text")
                    ui.button("Review again", on_click=lambda _, item=item: self._show(item)).props(
                        "no-caps flat"
                    )

    async def _reorder(self) -> None:
        self._skipped, self._item = 0, None
        await self._next()

    async def later(self) -> None:
        """Leave the outcome to a later time, and show the next one."""
        if self._item is not None and self._item.reviewer is None:
            self._skipped += 1
        self._item = None
        await self._next()

    async def decide(self, label: str | None, *, new_class: bool = False) -> None:
        """Decide the outcome that is shown; None: no class fits."""
        item = self._item
        if item is None or not self._person.signed_in():
            return
        if not self._around.rate.admits(self._person.annotator, now_ms()):
            self._messages.say(TOO_FAST)
            return
        annotator, comment = self._person.annotator, self._comment.text
        try:
            effect = await asyncio.to_thread(
                self._reviews.decide,
                *(annotator, item, label, now_ms()),
                new_class=new_class,
                comment=comment,
            )
        except NOT_DONE as error:
            self._messages.say(why_not_done(error, annotator))
            return
        word = "no class" if label is None else label
        self._messages.say(f"{item.instance_id}: {word}; {_EFFECTS[effect]}.")
        self._item = None
        await self._next()

    async def _decide_new(self) -> None:
        await self.decide(self._field.value.strip(), new_class=True)

    async def _key(self, event: Any) -> None:
        modifiers = event.modifiers
        is_other = modifiers.ctrl or modifiers.alt or modifiers.meta
        if event.action.keydown and not event.action.repeat and not is_other:
            await self.press(str(event.key))

    async def press(self, key: str) -> None:
        """Carry out the action of a key."""
        item = self._item
        if item is None or now_ms() - self._shown_ms < UNSEEN_MS:
            return
        if key == LATER:
            await self.later()
        elif key == DECLINE:
            await self.decide(None)
        elif len(key) == 1 and 0 <= (place := KEYS.find(key)) < len(item.classes):
            await self.decide(item.classes[place])


def outcome_in_words(item: Item, now: int) -> str:
    """Return what the votes came to, and when."""
    label = "no class" if item.label is None else item.label
    weight = "" if item.weight is None or item.label is None else f" with weight {item.weight:.3g}"
    text = f"The votes gave {label}{weight}, {item.certainty:.0%} certain, {span(now - item.at_ms)} ago."
    if item.reviewer is not None:
        text += f" {decision_in_words(item, now)}"
    return text


def decision_in_words(item: Item, now: int) -> str:
    """Return what a reviewer decided, and when."""
    label = "no class" if item.decision is None else item.decision
    ago = span(now - (item.reviewed_ms or now))
    return f"{item.instance_id}: {item.reviewer} decided for {label}, {ago} ago."


def votes_table(item: Item) -> str:
    """Return the votes as HTML."""
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape('not known' if vote is None else vote)}</td></tr>"
        for name, vote in item.votes.items()
    )
    head = "<thead><tr><th scope=col>Annotator</th><th scope=col>Answer</th></tr></thead>"
    return f'<table class="grove-table">{head}<tbody>{rows}</tbody></table>'


def record_table(item: Item, units: Any) -> str:
    """Return the features of an item's record as HTML."""
    record = item.record
    if record is None:
        return "<p>This application does not have the record any more. A decision is noted, not sent.</p>"
    card = Card(
        number=0,
        key=item.key,
        instance_id=item.instance_id,
        asked_ms=record.asked_ms,
        expires_ms=record.expires_ms,
        utility=record.utility,
        prediction=record.prediction,
        strategy=record.strategy,
        reason=None,
        features=record.features,
        left_out=record.left_out,
        cost=None,
        rules=record.rules,
        shares=record.shares,
        wanted=(),
        classes=item.classes,
        attributes={},
        ranges={},
        seen=record.seen,
    )
    return features_table(card, units)
