"""Wording: cards, numbers and times as people read them; texts from records are never markup."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Final

from streamapp.web.queue.cards import Attribute, Card, Cell, Range

ASKED: Final = "requests"
SEEN: Final = "records"
OUTSIDE: Final = "outside of"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Return a table as HTML; its texts are escaped.

    >>> table(["a"], [["<b>"]]).partition("<tbody>")[2]
    '<tr role="row"><td role="cell">&lt;b&gt;</td></tr></tbody></table>'
    """
    return _table_of_cells(head, [[html.escape(text) for text in row] for row in rows], caption)


def _table_of_cells(
    head: Sequence[str], rows: Sequence[Sequence[str]], caption: str, kind: str = "grove-table"
) -> str:
    """Return a table as HTML; its cells are HTML, its head and caption are texts.

    The roles are named because a table whose rows are stacked, on a phone, is none for a screen reader.
    """
    top = "".join(f'<th scope="col" role="columnheader">{html.escape(text)}</th>' for text in head)
    lines = ("".join(f'<td role="cell">{cell}</td>' for cell in row) for row in rows)
    body = "".join(f'<tr role="row">{line}</tr>' for line in lines)
    caption_tag = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return (
        f'<table role="table" class="{kind}">{caption_tag}<thead><tr role="row">{top}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def features_table(card: Card, units: Mapping[str, str]) -> str:
    """Return the known features of a card's instance as HTML, with the source of the ranges below."""
    rows = []
    for name, cell in card.features.items():
        unit = f" {units[name]}" if name in units and cell is not None else ""
        kind = ' class="grove-number"' if isinstance(cell, float) else ""
        value = f"<span{kind}>{html.escape(shown(cell) + unit)}</span>"
        rows.append((html.escape(name), value, _place(card, name)))
    head = ("Feature", "Value", "Among the values seen")
    return _table_of_cells(head, rows, _of_what(card), "grove-table grove-features")


def _place(card: Card, name: str) -> str:
    """Return a picture of a value's place among those seen, or a few words where no picture can be."""
    cell = card.features[name]
    range_ = (card.seen or card.ranges).get(name)
    words = _where(card, name)
    if not isinstance(cell, float) or range_ is None or range_.n < 2 or range_.low == range_.high:
        return html.escape(words)
    is_outside = words.startswith(OUTSIDE) or not range_.low <= cell <= range_.high
    warning = f' <span class="grove-outside-words">{html.escape(words)}</span>' if is_outside else ""
    return place_picture(cell, range_, words, is_outside=is_outside) + warning


def place_picture(value: float, range_: Range, words: str, *, is_outside: bool = False) -> str:
    """Return a line from the lowest to the highest value seen with a mark at a value, as HTML.

    words: the same for people who do not see the picture. is_outside: the mark is a warning.

    >>> 'cx="50.0"' in place_picture(5.0, Range(0.0, 10.0, 20), "between 0 and 10 (20 requests)")
    True
    """
    # Halves, because the difference of the largest numbers is not finite.
    share = (value / 2 - range_.low / 2) / (range_.high / 2 - range_.low / 2)
    at = 6 + 88 * min(max(share, 0.0), 1.0)
    kind = "grove-place-picture grove-outside" if is_outside else "grove-place-picture"
    label = html.escape(words)
    return (
        f'<span class="grove-place-row" title="{label}"><span aria-hidden="true">{range_.low:.4g}</span>'
        f'<svg role="img" aria-label="{label}" class="{kind}" viewBox="0 0 100 16" width="100" height="16">'
        '<line x1="6" y1="8" x2="94" y2="8"/><line x1="6" y1="4" x2="6" y2="12"/>'
        f'<line x1="94" y1="4" x2="94" y2="12"/><circle cx="{at:.1f}" cy="8" r="5"/></svg>'
        f'<span aria-hidden="true">{range_.high:.4g}</span></span>'
    )


def _where(card: Card, name: str) -> str:
    """Return where a value lies in its feature's range, among all records of the model if they are known."""
    cell, declared = card.features[name], card.attributes.get(name)
    if card.seen:
        return place_in(cell, card.seen.get(name), declared, SEEN)
    return place_in(cell, card.ranges.get(name), declared)


def _of_what(card: Card) -> str:
    """Return to which records the ranges of a card belong, and of which time; "": it has none."""
    if card.seen:
        most = max(range_.n for range_ in card.seen.values())
        return f"Ranges are from the {most:,} records that the model had answered before its request."
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
    'between 0 and 10 (20 requests)'
    >>> place_in(10.0, Range(0.0, 10.0, 2000), of=SEEN)
    'the highest of 2,000 records; the lowest is 0'
    >>> place_in(7.5, Range(7.5, 7.5, 2))
    'the same in all 2 requests'
    >>> place_in(7.5, Range(7.5, 7.5, 1), Attribute("k", "x", "numeric", low=0.0, high=5.0))
    'outside of 0 to 5, the range of the schema'
    """
    if not isinstance(cell, float):
        return ""
    if declared is not None and declared.low is not None and declared.high is not None:
        low, high = declared.low, declared.high
        if not low <= cell <= high:
            return f"{OUTSIDE} {low:g} to {high:g}, the range of the schema"
    if range_ is None or range_.n < 2:
        return ""
    low, high, n = range_.low, range_.high, f"{range_.n:,} {of}"
    if low == high == cell:
        return f"the same in all {n}"
    if cell >= high:
        return f"the highest of {n}; the lowest is {low:.4g}"
    if cell <= low:
        return f"the lowest of {n}; the highest is {high:.4g}"
    return f"between {low:.4g} and {high:.4g} ({n})"
