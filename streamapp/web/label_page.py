"""Label page: one card, one key a class. What it shows is text: names and ids of others are never markup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nicegui import run, ui

from streamapp.web.cards import Card, Cell, Counts, Refused
from streamapp.web.clock import now_ms
from streamapp.web.label_queue import NEVER, LabelQueue

DONT_KNOW, SKIP, UNDO, GUESS = "x", "s", "u", "g"
CLASS_KEYS: Final = "1234567890abcdefhijklmnopqrtvwyz"
UNSEEN_MS: Final = 250
"""A key that comes so soon after a card was for the card before: nobody has read this one."""
_STYLE: Final = """
body { background: #fff; color: #111; }
.grove-page { width: 100%; max-width: 46rem; margin: 0 auto; padding: .5rem; }
.grove-page .q-btn { min-height: 44px; }
.grove-page .q-table td, .grove-page .q-table th {
  font-size: 1rem; overflow-wrap: anywhere; white-space: normal;
}
:focus-visible { outline: 3px solid #0b57d0 !important; outline-offset: 2px; }
"""


@dataclass(frozen=True, slots=True)
class Person:
    """Who has the page before him, and for how long that is so."""

    annotator: str
    signed_in: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all pages share."""

    queue: LabelQueue
    counts: Callable[[], Counts]  # of a moment ago
    trouble: Callable[[], str]  # why nothing is read or sent; "": all is well
    hide_guess: bool = True
    has_users: bool = False


class LabelPage:
    """The elements of one browser's page, and what its keys do."""

    def __init__(self, around: Surroundings, person: Person) -> None:
        """Make the elements; a card comes with the first tick."""
        self._around, self._queue, self._person = around, around.queue, person
        self._card: Card | None = None
        self._shown_ms = 0
        self._guess_shown = not around.hide_guess
        self._busy = False
        ui.colors(primary="#0b57d0")  # 6.4 : 1 on white; NiceGUI's own blue has 3 : 1
        ui.add_css(_STYLE)
        with ui.element("main").classes("grove-page"):
            with ui.row().classes("items-center w-full"):
                self._status = ui.label().props("role=status")
                ui.space()
                ui.label(person.annotator)
                if around.has_users:
                    ui.html(
                        '<form method="post" action="/sign-out"><button>Sign out</button></form>',
                        sanitize=False,
                    )
            self._trouble = ui.label().props("role=alert").style("color:#8c0000")
            self._said = ui.label().props("role=alert aria-live=assertive").classes("text-weight-bold")
            self._place = ui.column().classes("w-full")
            with ui.row().classes("w-full"):
                self._undo = ui.button(f"Undo ({UNDO})", on_click=self.undo).props("no-caps outline")
        ui.keyboard(on_key=self._key, repeating=False, ignore=["input", "select", "textarea"])
        self._draw()
        ui.timer(1.0, self.tick)
        ui.timer(0.0, self.tick, once=True)

    @property
    def shown_number(self) -> int | None:
        """Return the number of the request that is shown."""
        return None if self._card is None else self._card.number

    # -- what it shows ------------------------------------------------------------------------------------

    def _draw(self) -> None:
        """Draw the card anew."""
        self._shown_ms = now_ms()
        self._guess_shown = not self._around.hide_guess
        self._place.clear()
        with self._place:
            if self._card is None:
                ui.label("Nothing is asked at the moment. A card appears here by itself.").classes("text-h6")
                return
            self._draw_card(self._card)

    def _draw_card(self, card: Card) -> None:
        ui.label(f"{card.key}: which class has {card.instance_id}?").classes("text-h6").props(
            "role=heading aria-level=1"
        ).style("overflow-wrap:anywhere")
        self._age = ui.label(_age(card, now_ms()))
        rows = [{"name": name, "value": shown(cell)} for name, cell in card.features.items()]
        columns = [
            {"name": "name", "label": "Feature", "field": "name", "align": "left", "sortable": True},
            {"name": "value", "label": "Value", "field": "value", "align": "left"},
        ]
        ui.table(rows=rows, columns=columns, row_key="name").props("flat bordered dense").classes("w-full")
        if card.left_out:
            ui.label(f"and {card.left_out:,} more features, which are not shown")
        with ui.row().classes("items-center w-full"):
            self._guess = ui.label()
            if card.prediction is not None and not self._guess_shown:
                ui.button(f"Show the model's guess ({GUESS})", on_click=self.show_guess).props("no-caps flat")
        self._draw_guess()
        with ui.row().classes("w-full").props('role=group aria-label="Classes"'):
            for place, name in enumerate(card.classes):
                key = f" ({CLASS_KEYS[place]})" if place < len(CLASS_KEYS) else ""
                ui.button(f"{name}{key}", on_click=lambda _, name=name: self.answer(name)).props(
                    "no-caps"
                ).style("overflow-wrap:anywhere")
        with ui.row().classes("w-full"):
            ui.button(f"I do not know ({DONT_KNOW})", on_click=lambda: self.answer(None)).props(
                "no-caps outline"
            )
            ui.button(f"Skip ({SKIP})", on_click=self.skip).props("no-caps outline")
        with ui.row().classes("items-center w-full"):
            field = ui.input("Another class").props('maxlength=1024 aria-label="Another class"')
            ui.button(
                "Answer with it", on_click=lambda: self.answer(field.value.strip(), new_class=True)
            ).props("no-caps outline")

    def _draw_guess(self) -> None:
        card = self._card
        if card is not None and self._guess_shown:
            guess = "knows no class yet" if card.prediction is None else f"says {card.prediction}"
            self._guess.set_text(f"The model {guess}")

    async def tick(self) -> None:
        """Look whether the card is still his, and for one if there is none."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        counts = self._around.counts()
        self._status.set_text(f"{counts.open:,} open, {counts.leased:,} with somebody, {counts.sent:,} sent")
        self._trouble.set_text(self._around.trouble())
        left = await run.io_bound(self._queue.undoable_ms, self._person.annotator, now_ms())
        self._undo.set_text(f"Undo ({UNDO}), {left / 1000:.0f} s left" if left else f"Undo ({UNDO})")
        self._undo.set_enabled(bool(left))
        card = self._card
        if self._busy:
            return
        if card is not None and not await run.io_bound(
            self._queue.holds, self._person.annotator, card.number
        ):
            if self._card is card:
                await self._next(
                    "This card is not yours any more: it was answered, has expired or was given on."
                )
        elif card is not None:
            self._age.set_text(_age(card, now_ms()))
        else:
            await self._next(None)

    async def _next(self, said: str | None) -> None:
        if said is not None:
            self._said.set_text(said)
        before = self._card
        self._card = await run.io_bound(self._queue.next_card, self._person.annotator, now_ms())
        if self._card != before or before is not None:
            self._draw()

    # -- what a person does -------------------------------------------------------------------------------

    async def _do(self, act: Callable[[], Card | None], said: str) -> None:
        """Carry out one thing at a time, say what came of it, and show the card that is next."""
        if self._busy or not self._person.signed_in():
            return
        self._busy = True
        try:
            card = await run.io_bound(act)
        except Refused as refused:
            self._said.set_text(str(refused))
            card = None
        else:
            self._said.set_text(said)
        try:
            if card is not None:
                self._card = card
                self._draw()
            else:
                await self._next(None)
        finally:
            self._busy = False
        await self.tick()

    async def answer(self, label: str | None, *, new_class: bool = False) -> None:
        """Answer the card that is shown; None: he does not know."""
        card = self._card
        if card is None:
            return
        said = f"{card.instance_id}: {'not known' if label is None else label}"

        def act() -> None:
            self._queue.answer(self._person.annotator, card.number, label, now_ms(), new_class=new_class)

        await self._do(act, said)

    async def skip(self) -> None:
        """Give the card back."""
        card = self._card
        if card is not None:
            annotator = self._person.annotator
            await self._do(
                lambda: self._queue.skip(annotator, card.number, now_ms()), f"{card.instance_id}: skipped"
            )

    async def undo(self) -> None:
        """Take the last answer back, and show its card."""
        await self._do(lambda: self._queue.undo(self._person.annotator, now_ms()), "Taken back.")

    def show_guess(self) -> None:
        """Show what the model answered."""
        self._guess_shown = True
        self._draw_guess()

    async def _key(self, event: Any) -> None:
        held = event.modifiers
        if not event.action.keydown or event.action.repeat or held.ctrl or held.alt or held.meta:
            return
        await self.press(str(event.key))

    async def press(self, key: str) -> None:
        """Do what a key stands for."""
        if key == UNDO:
            await self.undo()
            return
        card = self._card
        if card is None or now_ms() - self._shown_ms < UNSEEN_MS:
            return
        if key == SKIP:
            await self.skip()
        elif key == GUESS:
            self.show_guess()
        elif key == DONT_KNOW:
            await self.answer(None)
        elif len(key) == 1 and 0 <= (place := CLASS_KEYS.find(key)) < len(card.classes):
            await self.answer(card.classes[place])


def shown(cell: Cell) -> str:
    """Return a cell as people write it.

    >>> shown(12.0), shown(0.1), shown(None), shown("red")
    ('12', '0.1', '(missing)', 'red')
    """
    if cell is None:
        return "(missing)"
    return f"{cell:.10g}" if isinstance(cell, float) else str(cell)


def _age(card: Card, now: int) -> str:
    told = f"asked {span(now - card.asked_ms)} ago"
    if card.expires_ms != NEVER:
        left = card.expires_ms - now
        told += f", {span(left)} left" if left > 0 else ", late by the clock"
    utility = "" if card.utility is None else f" with utility {card.utility:.3g}"
    return f"{told}; by {card.strategy}{utility}"


def span(ms: int) -> str:
    """Return a time in its largest unit.

    >>> span(1500), span(90_000), span(7_200_000), span(200_000_000)
    ('1 s', '1 min', '2 h', '2 days')
    """
    seconds = max(0, ms) // 1000
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length * (2 if unit == "days" else 1):
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
