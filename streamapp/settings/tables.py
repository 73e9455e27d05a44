"""Tables of Markdown, for pages about settings and reports of experiments."""

from collections.abc import Iterable, Sequence
from typing import Any


def table(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table with a final line end."""
    lines = [_line(head), "|---" * len(head) + "|\n", *map(_line, rows)]
    return "".join(lines)


def code(value: Any) -> str:
    """Return a value as JSON between backquotes; whole numbers without a decimal point."""
    if isinstance(value, bool) or value is None:
        return f"`{'null' if value is None else str(value).lower()}`"
    return f"`{int(value) if isinstance(value, float) and value.is_integer() else value}`"


def _line(cells: Iterable[Any]) -> str:
    escaped = (str(cell).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |\n"
