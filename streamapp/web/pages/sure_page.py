"""Page of sure requests: several requests with the same confident prediction, confirmed together."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from nicegui import ui

from streamapp.web.clock import now_ms
from streamapp.web.layout.headings import heading
from streamapp.web.page_frame import Person, frame
from streamapp.web.pages.surroundings import NOT_DONE, TOO_FAST, Messages, Surroundings, why_not_done
from streamapp.web.queue.cards import Card
from streamapp.web.wording import shown

MOST: Final = 20
CELLS: Final = 8  # features shown in a row
HELP: Final = "Untick the records for which the prediction is wrong; they come again as single cards."
NOTHING: Final = "There is no request with a confident prediction now. New ones appear here without a reload."


class SurePage:
    """The elements of the page in one browser."""

    def __init__(self, around: Surroundings, person: Person) -> None:
        """Make the elements; the first tick shows cards."""
        self._around, self._queue, self._person = around, around.queue, person
        self._cards: list[Card] = []
        self._boxes: list[Any] = []
        with frame("/sure", person, has_users=around.has_users):
            self._messages = Messages(around)
            with ui.element("section").classes("grove-tile grove-card"):
                self._heading = heading("")
                self._help = ui.label(HELP).classes("grove-muted")
                self._column = ui.column().classes("w-full gap-0").props('role=group aria-label="Records"')
            with ui.element("div").classes("grove-answers"), ui.row().classes("items-center"):
                self._confirm = ui.button("Confirm", on_click=self.confirm).props("no-caps")
                self._undo = ui.button("Undo", on_click=self.undo).props("no-caps outline")
        self._draw()
        ui.timer(1.0, self.tick)
        ui.timer(0.0, self.tick, once=True)

    def _draw(self) -> None:
        self._column.clear()
        self._boxes = []
        self._confirm.set_visibility(bool(self._cards))
        self._help.set_visibility(bool(self._cards))
        if not self._cards:
            self._heading.set_text(self._queue.leases.paused(self._person.annotator) or NOTHING)
            return
        first = self._cards[0]
        self._heading.set_text(f"{first.key} predicts {first.prediction} for all of these records")
        with self._column:
            for card in self._cards:
                cells = [f"{name} {shown(cell)}" for name, cell in list(card.features.items())[:CELLS]]
                text = f"{card.instance_id}: {', '.join(cells)}{' …' if len(card.features) > CELLS else ''}"
                self._boxes.append(ui.checkbox(text, value=True).classes("grove-text"))
        self._confirm.set_text(f"The ticked records are {first.prediction}")

    async def tick(self) -> None:
        """Look for cards if there are none."""
        if not self._messages.tick(self._person):
            return
        undo_ms = await asyncio.to_thread(self._queue.actions.undoable_ms, self._person.annotator, now_ms())
        self._undo.set_enabled(bool(undo_ms))
        if not self._cards:
            await self._next()

    async def _next(self) -> None:
        before = self._cards
        self._cards = await asyncio.to_thread(self._queue.leases.sure, self._person.annotator, now_ms(), MOST)
        if self._cards or before or self._queue.leases.paused(self._person.annotator):
            self._draw()

    async def confirm(self) -> None:
        """Answer the ticked requests with the predicted class; the rest return to the queue."""
        if not self._cards or not self._admitted():
            return
        cards, ticked = self._cards, [bool(box.value) for box in self._boxes]
        right = [card.number for card, yes in zip(cards, ticked, strict=True) if yes]
        others = [card.number for card, yes in zip(cards, ticked, strict=True) if not yes]
        self._cards = []
        try:
            refused = await asyncio.to_thread(
                self._queue.actions.confirm, self._person.annotator, right, others, now_ms()
            )
        except NOT_DONE as error:
            self._cards = cards
            self._messages.say(why_not_done(error, self._person.annotator))
            return
        n_taken = len(right) - len(refused)
        also = f" {len(refused)} were not taken: {refused[0]}" if refused else ""
        self._messages.say(f"{n_taken} times {cards[0].prediction}.{also}")
        self._undo.set_enabled(n_taken > 0)
        await self._next()
        self._draw()

    async def undo(self) -> None:
        """Take back the answers that were confirmed last; their requests come again."""
        if not self._admitted():
            return
        try:
            await asyncio.to_thread(self._queue.actions.undo, self._person.annotator, now_ms())
        except NOT_DONE as error:
            self._messages.say(why_not_done(error, self._person.annotator))
            return
        self._messages.say("Taken back: you have one of them as a card, the other cards come again.")
        self._cards = []
        await self._next()
        self._draw()

    def _admitted(self) -> bool:
        if not self._person.signed_in():
            return False
        admitted = self._around.rate.admits(self._person.annotator, now_ms())
        if not admitted:
            self._messages.say(TOO_FAST)
        return admitted
