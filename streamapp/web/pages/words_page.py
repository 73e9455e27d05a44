"""Words page: all words that the pages explain, with the chapter of the documentation that has more."""

from __future__ import annotations

import html

from nicegui import ui

from streamapp.web.layout.headings import heading
from streamapp.web.layout.hints import WORDS_PAGE
from streamapp.web.layout.words import WORDS, address_of
from streamapp.web.page_frame import Person, frame


def words_page(person: Person, docs: str, *, has_users: bool) -> None:
    """Draw the page; docs: address of the documentation site, or "" if none is known."""
    with frame(WORDS_PAGE, person, has_users=has_users):
        heading("Words")
        ui.label("The words of these pages. A question mark beside a word shows the same text in place.")
        ui.html(words_html(docs), sanitize=False).classes("w-full")


def words_html(docs: str) -> str:
    """Return the list of all words as HTML.

    >>> 'docs/web.md, A card' in words_html("")
    True
    """
    items = []
    for key, word in sorted(WORDS.items(), key=lambda item: item[1].name):
        chapter = f"docs/{word.page}.md" + (f", {word.heading}" if word.heading else "")
        more = html.escape(chapter)
        if docs:
            more = f'<a href="{html.escape(address_of(word, docs))}">{more}</a>'
        items.append(
            f'<dt id="{key}">{html.escape(word.name)}</dt><dd>{html.escape(word.meaning)} '
            f'<span class="grove-muted">More: {more}</span></dd>'
        )
    return f'<dl class="grove-words">{"".join(items)}</dl>'
