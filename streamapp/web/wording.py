"""Wording: cards, numbers and times as people read them; texts of others are never markup."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from streamapp.web.cards import Attribute, Card, Cell, Range


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML; whatever its texts are, they are texts.

    >>> table(["a"], [["<b>"]]).partition("<tbody>")[2]
    '<tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    top = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in head)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f'<table class="grove-table"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def features_table(card: Card, units: Mapping[str, str]) -> str:
    """Return what is known of a card's instance, as HTML."""
    rows = []
    for name, cell in card.features.items():
        unit = f" {units[name]}" if name in units and cell is not None else ""
        where = place_in(cell, card.ranges.get(name), card.attributes.get(name))
        rows.append((name, shown(cell) + unit, where))
    return table(("Feature", "Value", "Where it lies"), rows)


def shown(cell: Cell) -> str:
    """Return a cell as people write it.

    >>> shown(12.0), shown(0.1), shown(None), shown("red")
    ('12', '0.1', '(missing)', 'red')
    """
    if cell is None:
        return "(missing)"
    return f"{cell:.10g}" if isinstance(cell, float) else str(cell)


def place_in(cell: Cell, seen: Range | None, declared: Attribute | None = None) -> str:
    """Return where a number lies between those that requests of this model had; "": it cannot be said.

    >>> place_in(7.5, Range(0.0, 10.0, 20))
    '75 % of the way from 0 to 10 (20 requests)'
    >>> place_in(10.0, Range(0.0, 10.0, 20))
    'the highest of 20 requests, from 0'
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
            return f"outside of {low:g} to {high:g}, which the schema says"
    if seen is None or seen.n < 2:
        return ""
    if seen.low == seen.high:
        return f"as in all {seen.n:,} requests"
    if cell >= seen.high:
        return f"the highest of {seen.n:,} requests, from {seen.low:.4g}"
    if cell <= seen.low:
        return f"the lowest of {seen.n:,} requests, up to {seen.high:.4g}"
    share = (cell - seen.low) / (seen.high - seen.low)
    return f"{share:.0%} of the way from {seen.low:.4g} to {seen.high:.4g} ({seen.n:,} requests)".replace(
        "%", " %"
    )


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
