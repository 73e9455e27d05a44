"""Cells of a table that hold what others have named: keys, topics, reasons."""

from __future__ import annotations

from rich.text import Text

from streamapp.worker.observability.logs import printable


def cell(said: str) -> Text:
    """Return a text as it is: no markup of rich's, and what a terminal would obey is escaped."""
    return Text(printable(said))
