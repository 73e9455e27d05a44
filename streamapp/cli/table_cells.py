"""Cells of a table with text from outside, such as keys, topics and reasons."""

from __future__ import annotations

from rich.text import Text

from streamapp.worker.observability.logs import printable


def cell(text: str) -> Text:
    """Return a text without markup of rich, and with a terminal's control characters escaped."""
    return Text(printable(text))
