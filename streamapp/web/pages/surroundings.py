"""Surroundings: what all pages of annotators share, and what each shows of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from nicegui import ui

from streamapp.web.frame import Person
from streamapp.web.queue.cards import Counts
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.rate_limit import RateLimit

ACTIONS_PER_S, ACTIONS_BURST = 10.0, 50  # of an annotator: nobody reads faster
TOO_FAST: Final = "That was too fast; nothing was taken. Wait a moment."


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all pages share."""

    queue: LabelQueue
    counts: Callable[[], Counts]  # of a moment ago
    trouble: Callable[[], str]  # why nothing is read or sent; "": all is well
    hide_guess: bool = True
    has_users: bool = False
    units: Mapping[str, str] = field(default_factory=dict)  # of features
    rate: RateLimit = field(default_factory=lambda: RateLimit(ACTIONS_PER_S, ACTIONS_BURST))


class Messages:
    """The elements at the top of a page: how much is asked, what is wrong, what came of the last action."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._status = ui.label().props("role=status")
        self._trouble = ui.label().props("role=alert").style("color:#8c0000")
        self._said = ui.label().props("role=alert aria-live=assertive")
        self._said.classes("text-weight-bold grove-text")

    def say(self, text: str) -> None:
        """Tell what came of an action."""
        self._said.set_text(text)

    def tick(self, person: Person) -> bool:
        """Show the counts of now, and what is wrong; send him to sign in if he has to, and return False."""
        if not person.signed_in():
            ui.navigate.to("/sign-in")
            return False
        counts = self._around.counts()
        self._status.set_text(f"{counts.open:,} open, {counts.leased:,} with somebody, {counts.sent:,} sent")
        self._trouble.set_text(self._around.trouble())
        return True
