"""Wording: cards, numbers and times as people read them; texts from records are never markup."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Final

from streamapp.web.queue.cards import Attribute, Card, Cell, Range

ASKED: Final = "requests"
SEEN: Final = "records"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Return a table as HTML; its texts are escaped.

    >>> table(["a"], [["<b>"]]).partition("<tbody>")[2]
    '<tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    top = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in head)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in row)}</tr>" for row in rows)
    caption_tag = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return (
        f'<table class="grove-table">{caption_tag}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
    )


def features_table(card: Card, units: Mapping[str, str]) -> str:
    """Return the known features of a card's instance as HTML, with the source of the ranges below."""
    rows = []
    for name, cell in card.features.items():
        unit = f" {units[name]}" if name in units and cell is not None else ""
        rows.append((name, shown(cell) + unit, _where(card, name)))
    return table(("Feature", "Value", "Where it lies"), rows, _of_what(card))


def _where(card: Card, name: str) -> str:
    """Return where a value lies in its feature's range, among all records of the model if they are known."""
    cell, declared = card.features[name], card.attributes.get(name)
    if card.seen:
        return place_in(cell, card.seen.get(name), declared, SEEN)
    return place_in(cell, card.ranges.get(name), declared)


def _of_what(card: Card) -> str:
    """Return to which records the ranges of a card belong, and of which time; "": it has none."""
    if card.seen:
        return "Ranges are from the records that the model had answered before its request."
    if card.ranges:
        return "Ranges are from the requests of this model up to now, not from all its records."
    return ""


def shown(cell: Cell) -> str:
    """Return a cell as people write it.

    >>> shown(12.0), shown(0.1), shown(None), shown("red")
    ('12', '0.1', '(missing)', 'red')
    """
    if cell is None:
        return "(missing)"
    return f"{cell:.10g}" if isinstance(cell, float) else str(cell)


def place_in(cell: Cell, range_: Range | None, declared: Attribute | None = None, of: str = ASKED) -> str:
    """Return where a number lies in the range of some records; "": there is no range or no number.

    >>> place_in(7.5, Range(0.0, 10.0, 20))
    '75 % of the way from 0 to 10 (20 requests)'
    >>> place_in(10.0, Range(0.0, 10.0, 2000), of=SEEN)
    'the highest of 2,000 records, from 0'
    >>> place_in(7.5, Range(7.5, 7.5, 2))
    'as in all 2 requests'
    >>> place_in(7.5, Range(7.5, 7.5, 1), Attribute("k", "x", "numeric", low=0.0, high=5.0))
    'outside of 0 to 5, which the schema says'
    """
    if not isinstance(cell, float):
        return ""
    if declared is not None and declared.low is not None and declared.high is not None:
        low, high = declared.low, declared.high
        if not low <= cell <= high:
            return f"outside of {low:g} to {high:g}, the range of the schema"
    if range_ is None or range_.n < 2:
        return ""
    low, high, n = range_.low, range_.high, f"{range_.n:,} {of}"
    if low == high == cell:
        return f"as in all {n}"
    if cell >= high:
        return f"the highest of {n}, from {low:.4g}"
    if cell <= low:
        return f"the lowest of {n}, up to {high:.4g}"
    share = (cell / 2 - low / 2) / (high / 2 - low / 2)  # of the largest numbers, too
    return f"{share:.0%} of the way from {low:.4g} to {high:.4g} ({n})".replace("%", " %")


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
