"""Spelling of plug-in names: how specs write them, and what is suggested for an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

LIKE: Final = 0.6
"""Likeness from which a name is suggested."""
AKIN: Final = 0.4
"""The same where both begin with one letter."""


def of_file(name: str) -> str:
    """Return the name of a plug-in's file: a spec may write ``-`` for ``_``."""
    return str(name).replace("-", "_")


def of_spec(family: str, file_name: str) -> str:
    """Return a plug-in's name as canonical specs and people write it: learners with ``-``."""
    return file_name.replace("_", "-") if family == "learners" else file_name


def known(unknown_name: str, names: Iterable[str], aliases: Iterable[str] = ()) -> str:
    """Return ``known: a, b, c``, and the name or alias that is most like the given one, if any is like it."""
    listed = list(names)
    listing = f"known: {', '.join(listed) or 'none'}"
    folded = {of_file(name).lower(): name for name in (*aliases, *listed)}
    word = of_file(unknown_name).lower()
    near = difflib.get_close_matches(word, folded, 1, LIKE)
    if not near:  # short names of other trees, such as ``hat``: no misspelling, but something of the kind
        near = difflib.get_close_matches(word, [name for name in folded if name[0] == word[:1]], 1, AKIN)
    return f"{listing}; did you mean {folded[near[0]]!r}?" if near else listing
