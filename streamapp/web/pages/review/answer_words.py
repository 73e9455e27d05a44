"""Answer words: what an annotator may add to a class: a reason to decline, and a comment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import ui

from streamapp.web.annotation_terms import Terms
from streamapp.web.queue.answer_checks import COMMENT_MAX

Decline = Callable[[str | None], Awaitable[None]]


class DeclineButtons:
    """One button, or one for each of the operator's reasons."""

    def __init__(self, terms: Terms, decline: Decline, key: str) -> None:
        """decline: called with the reason, None if the operator has no reasons."""
        self.needs_reason = bool(terms.decline_reasons)
        self._first: Any = None
        if not self.needs_reason:
            self.element: Any = ui.button(f"I do not know ({key})", on_click=lambda: decline(None))
            self.element.props("no-caps outline")
            return
        self.element = ui.row().classes("items-center w-full")
        with self.element.props('role=group aria-label="I do not know, because"'):
            ui.label(f"I do not know ({key}), because:")
            for reason in terms.decline_reasons:
                button = ui.button(reason, on_click=lambda _, reason=reason: decline(reason))
                button.props("no-caps outline").classes("grove-text")
                self._first = self._first or button

    def focus(self) -> None:
        """Move the keyboard to the first reason."""
        self._first.run_method("$el.focus")


class CommentField:
    """A field for a comment, if the operator allows comments."""

    def __init__(self, terms: Terms) -> None:
        self._field = None
        if terms.comments:
            self._field = ui.input("Comment (optional)").classes("w-full")
            self._field.props(f'maxlength={COMMENT_MAX} aria-label="Comment"')

    @property
    def text(self) -> str | None:
        """Return the comment; None: there is none."""
        return (self._field.value.strip() or None) if self._field is not None else None

    def clear(self) -> None:
        """Empty the field, for the next card."""
        if self._field is not None:
            self._field.set_value("")
