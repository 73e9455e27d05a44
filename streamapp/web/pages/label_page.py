"""Label page: one card at a time, one key for each class. Names from records are text, never markup."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from nicegui import ui

from streamapp.web.clock import now_ms
from streamapp.web.formatting import span
from streamapp.web.layout.headings import heading
from streamapp.web.layout.hints import hint
from streamapp.web.page_frame import Person, frame
from streamapp.web.pages.feature_form import FeatureForm
from streamapp.web.pages.review.answer_words import CommentField, DeclineButtons
from streamapp.web.pages.surroundings import NOT_DONE, TOO_FAST, Messages, Surroundings, why_not_done
from streamapp.web.queue.cards import Card
from streamapp.web.queue.expiry import NEVER
from streamapp.web.wording import features_table

DONT_KNOW, SKIP, UNDO, GUESS = "x", "s", "u", "g"
CLASS_KEYS: Final = "1234567890abcdefhijklmnopqrtvwyz"
UNSEEN_MS: Final = 250
"""A key pressed this soon after a card appears was meant for the card before it."""
REASONS: Final = {"disagreement": "because two models disagree"}
"""Reason of a request → words for people."""
NOTHING: Final = "There is no request now. A new card appears here without a reload."


class LabelPage:
    """The elements of the page in one browser, and the actions of its keys.

    The elements are made once and get new texts with each card, which is faster than making them again.
    """

    def __init__(self, around: Surroundings, person: Person) -> None:
        """Make the elements; the first tick shows a card."""
        self._around, self._queue, self._person = around, around.queue, person
        self._actions = around.queue.actions
        self._card: Card | None = None
        self._ahead: Card | None = None  # the card that comes after the present one
        self._shown_ms = 0
        self._guess_shown = not around.hide_guess
        self._busy = False
        self._classes: tuple[str, ...] | None = None
        with frame("/label", person, has_users=around.has_users):
            self._messages = Messages(around)
            self._make()
        ui.keyboard(on_key=self._key, repeating=False, ignore=["input", "select", "textarea"])
        self._draw()
        ui.timer(1.0, self.tick)
        ui.timer(0.0, self.tick, once=True)

    def _make(self) -> None:
        with ui.element("section").classes("grove-tile grove-card"):
            self._heading = heading("")
            with ui.column().classes("w-full gap-2") as self._of_card:
                with ui.element("div").classes("grove-headed"):
                    self._age = ui.label().classes("grove-muted")
                    hint("utility")
                self._features = ui.html(sanitize=False).classes("w-full")
                self._left_out = ui.label()
                with ui.element("div").classes("grove-guess") as self._of_guess:
                    self._guess = ui.label().classes("grove-text")
                    self._show_guess = ui.button(
                        f"Show the model's guess ({GUESS})", on_click=self.show_guess
                    ).props("no-caps flat")
                    hint("guess")
                self._form = FeatureForm(self.give, self._around.units)
        # The answers stay in view below a long record.
        with ui.element("div").classes("grove-answers"):
            with ui.column().classes("w-full gap-2") as self._of_label:
                self._buttons = ui.row().classes("w-full").props('role=group aria-label="Classes"')
                with ui.row().classes("items-center w-full") as self._of_new_class:
                    self._field = ui.input("Another class").props(
                        'dense outlined maxlength=1024 aria-label="Another class"'
                    )
                    ui.button("Answer with it", on_click=self._answer_new).props("no-caps outline")
                self._comment = CommentField(self._queue.terms)
            with ui.row().classes("items-center w-full"):
                self._decline = DeclineButtons(self._queue.terms, self._declined, DONT_KNOW)
                self._skip = ui.button(f"Skip ({SKIP})", on_click=self.skip).props("no-caps outline")
                self._undo = ui.button(f"Undo ({UNDO})", on_click=self.undo).props("no-caps outline")

    @property
    def shown_number(self) -> int | None:
        """Return the number of the request that is shown."""
        return None if self._card is None else self._card.number

    # -- display ------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        """Show the card, or a notice that there is none."""
        card = self._card
        self._shown_ms = now_ms()
        self._guess_shown = not self._around.hide_guess
        self._of_card.set_visibility(card is not None)
        self._skip.set_visibility(card is not None)
        is_label = card is not None and not card.wanted
        self._of_label.set_visibility(is_label)
        self._decline.element.set_visibility(is_label)
        if card is None:
            self._heading.set_text(self._without_card())
            return
        question = "which values has" if card.wanted else "which class has"
        self._heading.set_text(f"{card.key}: {question} {card.instance_id}?")
        self._age.set_text(_age(card, now_ms()))
        self._features.set_content(features_table(card, self._around.units))
        self._left_out.set_visibility(bool(card.left_out))
        self._left_out.set_text(f"and {card.left_out:,} more features, which are not shown")
        self._form.show(card)
        if not card.wanted:
            self._field.set_value("")
            self._comment.clear()
            self._draw_classes(card.classes)
        self._draw_guess(card)

    def _draw_classes(self, classes: tuple[str, ...]) -> None:
        if classes == self._classes:
            return
        self._classes = classes
        self._buttons.clear()
        with self._buttons:
            for place, name in enumerate(classes):
                key = f" ({CLASS_KEYS[place]})" if place < len(CLASS_KEYS) else ""
                ui.button(f"{name}{key}", on_click=lambda _, name=name: self.answer(name)).props(
                    "no-caps"
                ).classes("grove-text")

    def _draw_guess(self, card: Card) -> None:
        hidden = card.prediction is not None and not self._guess_shown
        self._of_guess.set_visibility(not card.wanted)
        self._show_guess.set_visibility(hidden and not card.wanted)
        self._guess.set_visibility(self._guess_shown and not card.wanted)
        self._guess.set_text(_guess(card))

    async def tick(self) -> None:
        """Check that the card is still leased to this person; if there is none, look for one."""
        if not self._messages.tick(self._person) or self._busy:
            return
        card = self._card
        number = None if card is None else card.number
        is_his, undo_ms = await asyncio.to_thread(
            self._queue.looked_at, self._person.annotator, number, now_ms()
        )
        if self._busy or self._card is not card:
            return
        self._draw_undo(undo_ms)
        if card is None:
            self._heading.set_text(self._without_card())
            await self._next(None)
        elif is_his:
            self._age.set_text(_age(card, now_ms()))
        else:
            await self._next(
                "This card is no longer yours: it was answered, it expired, or another person has it now."
            )

    def _without_card(self) -> str:
        """Return why there is no card."""
        return self._queue.leases.paused(self._person.annotator) or NOTHING

    def _draw_undo(self, undo_ms: int) -> None:
        self._undo.set_text(f"Undo ({UNDO}), {undo_ms / 1000:.0f} s left" if undo_ms else f"Undo ({UNDO})")
        self._undo.set_enabled(bool(undo_ms))

    async def _next(self, message: str | None) -> None:
        if message is not None:
            self._messages.say(message)
        before = self._card
        self._card = await asyncio.to_thread(self._queue.leases.next_card, self._person.annotator, now_ms())
        if self._card != before or before is not None:
            self._draw()
        self._ahead = await asyncio.to_thread(self._queue.leases.card_ahead, self._person.annotator, now_ms())

    # -- actions ------------------------------------------------------------------------------------------

    async def _do(self, act: Callable[[], Card | None], message: str, *, ends_card: bool = True) -> None:
        """Carry out one action at a time, show its result, and show the next card.

        ends_card: show the next card at once, before the answer is on disk; until it is, further actions
        are ignored. This is not done for typed text, which may be refused and which the person may then
        correct.
        """
        if self._busy or not self._person.signed_in():
            return
        if not self._around.rate.admits(self._person.annotator, now_ms()):
            self._messages.say(TOO_FAST)
            return
        self._busy = True
        before = shown = self._card
        if ends_card and self._ahead is not None:
            shown = self._card = self._ahead
            self._draw()
        try:
            turn = await asyncio.to_thread(self._queue.act, self._person.annotator, act, now_ms())
        except NOT_DONE as error:
            self._card = before
            self._draw()
            self._messages.say(why_not_done(error, self._person.annotator))
            return
        finally:
            self._busy = False
        self._messages.say(turn.refused or message)
        self._card, self._ahead = turn.card, turn.ahead
        if self._card != shown:
            self._draw()
        self._draw_undo(turn.undoable_ms)

    async def answer(self, label: str | None, *, new_class: bool = False, reason: str | None = None) -> None:
        """Answer the card that is shown; None: the person does not know the class."""
        card = self._card
        if card is None or card.wanted:
            return
        message = f"{card.instance_id}: {'not known' if label is None else label}"
        feedback = list[str]()
        members: dict[str, Any] = {"shown_ms": self._shown_ms, "new_class": new_class}
        members |= {"reason": reason, "comment": self._comment.text}

        def act() -> None:
            gold = self._actions.settled_class(card.number)
            self._actions.answer(self._person.annotator, card.number, label, now_ms(), **members)
            if gold is not None:
                right = "as you answered" if gold == label else f"and you answered {label or 'not known'}"
                feedback.append(f"{card.instance_id} was a test: its class is {gold}, {right}")

        await self._do(act, message, ends_card=not new_class)
        if feedback:
            self._messages.say(feedback[0])

    async def _declined(self, reason: str | None) -> None:
        await self.answer(None, reason=reason)

    async def _answer_new(self) -> None:
        await self.answer(self._field.value.strip(), new_class=True)

    async def give(self, finish: bool) -> None:
        """Send the fields of the card that is shown; finish: the model need not wait for the rest."""
        card = self._card
        if card is None or not card.wanted:
            return

        def act() -> None:
            self._actions.give(self._person.annotator, card.number, self._form.given(card, finish), now_ms())

        await self._do(act, f"{card.instance_id}: values given", ends_card=False)

    async def skip(self) -> None:
        """Return the card to the queue."""
        card = self._card
        if card is not None:
            annotator = self._person.annotator
            await self._do(
                lambda: self._actions.skip(annotator, card.number, now_ms()),
                f"{card.instance_id}: skipped",
            )

    async def undo(self) -> None:
        """Take back the last answer, and show its card."""
        await self._do(
            lambda: self._actions.undo(self._person.annotator, now_ms()),
            "Taken back.",
            ends_card=False,
        )

    def show_guess(self) -> None:
        """Show the model's prediction, and the rules that led to it."""
        self._guess_shown = True
        if self._card is not None:
            self._draw_guess(self._card)

    async def _key(self, event: Any) -> None:
        modifiers = event.modifiers
        if (
            not event.action.keydown
            or event.action.repeat
            or modifiers.ctrl
            or modifiers.alt
            or modifiers.meta
        ):
            return
        await self.press(str(event.key))

    async def press(self, key: str) -> None:
        """Carry out the action of a key."""
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
        elif key == DONT_KNOW and self._decline.needs_reason and not card.wanted:
            self._decline.focus()
            self._messages.say("Choose why you do not know the class.")
        elif key == DONT_KNOW:
            await self.answer(None)
        elif len(key) == 1 and 0 <= (place := CLASS_KEYS.find(key)) < len(card.classes):
            await self.answer(card.classes[place])


def _guess(card: Card) -> str:
    sentence = (
        "The model has no class yet" if card.prediction is None else f"The model answers {card.prediction}"
    )
    if card.rules is not None:
        sentence += "; it has no rule yet" if card.rules == "all" else f", because {card.rules}"
    if card.shares:
        by_share = sorted(card.shares.items(), key=lambda item: -item[1])
        sentence += ". There it has seen: " + ", ".join(
            f"{name} {share:.0%}" for name, share in by_share[:10]
        )
    return sentence


def _age(card: Card, now: int) -> str:
    sentence = f"Requested {span(now - card.asked_ms)} ago"
    if card.expires_ms != NEVER:
        ms_left = card.expires_ms - now
        sentence += f", {span(ms_left)} left" if ms_left > 0 else ", too late by the clock"
    utility = "" if card.utility is None else f" with utility {card.utility:.3g}"
    cost = "" if card.cost is None else f", at a cost of {card.cost:g}"
    reason = "" if card.reason is None else f", {REASONS.get(card.reason, f'reason: {card.reason}')}"
    return f"{sentence}. Chosen by {card.strategy}{utility}{cost}{reason}"
