"""Hints: a button beside a term that opens its meaning in place, without a script or a request."""

from __future__ import annotations

import html
import itertools
from typing import Final

from nicegui import ui

from streamapp.web.layout.words import WORDS

WORDS_PAGE: Final = "/words"
_numbers = itertools.count(1)


def hint_html(key: str) -> str:
    """Return the button of a word's hint, with its text, as HTML; key: of WORDS."""
    number = next(_numbers)
    return hint_button(key, number) + hint_text(key, number)


def hint_button(key: str, number: int) -> str:
    """Return the button that opens the text of the same number."""
    name = html.escape(WORDS[key].name)
    return (
        f'<button type="button" class="grove-hint" popovertarget="hint-{number}" '
        f'aria-label="Meaning of {name}">?</button>'
    )


def hint_text(key: str, number: int) -> str:
    """Return the text that a button of the same number opens."""
    word = WORDS[key]
    return (
        f'<div popover id="hint-{number}" class="grove-popover"><strong>{html.escape(word.name)}</strong> '
        f'{html.escape(word.meaning)} <a href="{WORDS_PAGE}#{key}">All words</a></div>'
    )


def hint(key: str) -> None:
    """Draw the hint of a word; key: of WORDS."""
    ui.html(hint_html(key), sanitize=False).classes("grove-hint-place")


def next_number() -> int:
    """Return a number for the button and the text of one hint."""
    return next(_numbers)
