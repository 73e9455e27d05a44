"""Lengths: bounds on the texts of a row (id, class, annotator, names and values of features).

Models, pending instances and answers keep these texts long after the record is gone, so each text has its own
bound, independent of the size of the record (`text.max.bytes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from topics.codecs.flaws import Flaw, Flaws, add_flaw, quote
from topics.codecs.limits import Limits
from topics.columns.records import Features, Ints32
from topics.errors import Reason

UTF8_BYTES = 4
"""Most bytes of a character."""


def too_long(what: str, text: str, limit: int, setting: str = "text.max.bytes") -> Flaw | None:
    """Return the flaw of a text with more than `limit` bytes of UTF-8; `what` names the text for a person."""
    if len(text) * UTF8_BYTES <= limit:
        return None
    size = len(text) if text.isascii() else len(text.encode(errors="replace"))
    if size <= limit:
        return None
    detail = f"{what} of {size:,} bytes must have at most {setting}={limit:,}; it begins {quote(text)}"
    return Flaw(Reason.TOO_LONG, detail)


def check_cells(
    what: str, cells: Sequence[str | None], limit: int, flaws: Flaws, rows: Iterable[int] | None = None
) -> None:
    """Note the rows whose text is too long; `rows` are those of the cells (None: numbered from 0)."""
    if max(map(len, filter(None, cells)), default=0) * UTF8_BYTES <= limit:
        return
    for row, cell in zip(range(len(cells)) if rows is None else rows, cells, strict=True):
        flaw = too_long(what, cell, limit) if cell else None
        if flaw is not None:
            flaws.setdefault(row, flaw)


def class_flaw(name: str, limits: Limits) -> Flaw | None:
    """Return the flaw of a class name that is too long, or None."""
    if limits.text_max_bytes < limits.class_max_bytes:
        return too_long("a class", name, limits.text_max_bytes)
    return too_long("a class", name, limits.class_max_bytes, "max.class.name.bytes")


def check_classes(names: Sequence[str], label: Ints32, limits: Limits, flaws: Flaws) -> None:
    """Note the rows whose class name is too long; `label` is int32[n], indices into `names`."""
    for code, name in enumerate(names):
        flaw = class_flaw(name, limits)
        if flaw is not None:
            add_flaw(flaws, np.flatnonzero(label == code), flaw)


def check_features(groups: Sequence[Features], limit: int, most: int, flaws: Flaws) -> None:
    """Note the rows with more than `most` features, or with a name or value that is too long."""
    for group in groups:
        flaw = None if group.names is None else name_flaw(group.names, limit, most)
        if flaw is not None:
            add_flaw(flaws, group.rows.tolist(), flaw)
        for column, cells in group.strings.items():
            name = f"feature {column}" if group.names is None else f"feature {quote(group.names[column])}"
            check_cells(f"the value of {name}", cells, limit, flaws, group.rows.tolist())


def name_flaw(names: Sequence[str], limit: int, most: int) -> Flaw | None:
    """Return the flaw of a row's feature names: too many of them, or one too long."""
    if len(names) > most:
        return Flaw(Reason.TOO_MANY_FEATURES, f"{len(names):,} features are named; at most {most:,} may be")
    if max(map(len, names), default=0) * UTF8_BYTES <= limit:
        return None
    flaws = (too_long("the name of a feature", name, limit) for name in names)
    return next((flaw for flaw in flaws if flaw is not None), None)
