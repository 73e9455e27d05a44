"""Surroundings: objects that the annotators' pages share, and the messages at the top of each page."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from nicegui import ui

from streamapp.web.page_frame import Person
from streamapp.web.queue.cards import Counts, Refused
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.rate_limit import RateLimit

ACTIONS_PER_S, ACTIONS_BURST = 10.0, 50  # per annotator: nothing is read faster
logger = logging.getLogger(__name__)

NOT_DONE: Final = (Refused, sqlite3.OperationalError)
"""Errors of an action that was not carried out: `why_not_done` has the words for the person."""

NOT_STORED: Final = (
    "This was not recorded: the server has no room to store it. Try again after its operator has made room"
)
TOO_FAST: Final = "That was too fast; nothing was taken. Wait a moment."


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Objects that all pages share."""

    queue: LabelQueue
    counts: Callable[[], Counts]  # counts that are at most about a second old
    trouble: Callable[[], str]  # why reading or sending fails; "": both work
    hide_guess: bool = True
    has_users: bool = False
    units: Mapping[str, str] = field(default_factory=dict)  # by feature
    paused: Callable[[], int] = lambda: 0  # number of people who get no cards for now
    rate: RateLimit = field(default_factory=lambda: RateLimit(ACTIONS_PER_S, ACTIONS_BURST))


def why_not_done(error: Exception, annotator: str) -> str:
    """Return the words for a person whose action failed; a failure of the disk also goes into the log."""
    if isinstance(error, Refused):
        return str(error)
    logger.error("an action of %s cannot be stored: %s", annotator, error)
    return f"{NOT_STORED} ({error})."


class Messages:
    """The elements at the top of a page: open requests, trouble, and the result of the last action."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._status = ui.label().props("role=status").classes("grove-muted")
        self._trouble = ui.label().props("role=alert").classes("grove-trouble")
        self._said = ui.label().props("role=alert aria-live=assertive")
        self._said.classes("text-weight-bold grove-text")

    def say(self, text: str) -> None:
        """Show the result of an action."""
        self._said.set_text(text)

    def tick(self, person: Person) -> bool:
        """Show counts and trouble; if the session has ended, go to the sign-in page and return False."""
        if not person.signed_in():
            ui.navigate.to("/sign-in")
            return False
        counts = self._around.counts()
        self._status.set_text(
            f"{counts.open:,} requests wait, {counts.leased:,} of them with annotators; "
            f"{counts.sent:,} answers sent"
        )
        self._trouble.set_text(self._around.trouble())
        return True
