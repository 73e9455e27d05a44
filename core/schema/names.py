"""Names and their codes: the values of a nominal attribute, the classes of a schema.

Models that met the same names in the same order share one object; models that met them in different orders
share the texts. Codes are found in a hash table of small integers, three to eight bytes a name. A dict takes
forty, and each of ten thousand models may have another order.
"""

from __future__ import annotations

import sys
import threading
import weakref
from array import array
from collections.abc import Iterable
from typing import ClassVar, Final

from core.schema import shared

SHARED_TEXTS: Final = 1 << 14
"""Number of texts that are stored for sharing; when there are more, the store is cleared."""

SHARED_LENGTH: Final = 64
"""Most characters of a text that is stored for sharing: models rarely share longer texts."""

PER_NAME: Final = 16
"""Bytes that `Names.content_bytes` counts for a name in addition to its text."""

_texts: dict[str, str] = {}


def _shared(text: str) -> str:
    """Return the stored object that equals a text, or the text itself, which is then stored."""
    if len(text) > SHARED_LENGTH:
        return text
    stored = _texts.get(text)
    if stored is None:
        if len(_texts) >= SHARED_TEXTS:
            _texts.clear()
        stored = _texts[text] = text
    return stored


def text_bytes(text: str) -> int:
    """Return the most bytes that a text takes in memory: one a character, or four if not all of it is ASCII.

    The result is the same on every machine, so that decisions based on it are the same too.
    """
    return len(text) if text.isascii() else 4 * len(text)


def name_bytes(text: str) -> int:
    """Return the bytes that `Names.content_bytes` counts for a name."""
    return text_bytes(text) + PER_NAME


class Names:
    """Distinct texts and their codes; immutable. Equal names are one object: make them with ``Names.of``."""

    __slots__ = ("__weakref__", "_size", "content_bytes", "own_bytes", "table", "texts")

    texts: tuple[str, ...]
    """The names in code order."""
    content_bytes: int
    """Bytes of the names, the same on every machine; counts for a model's ``max_bytes``."""
    table: array[int]
    """Open addressing: a name's code plus one, at the slot of its hash or a later one; 0: an empty slot."""
    own_bytes: int
    """Bytes of the texts that only this object uses."""
    _size: int
    """Bytes of this object, without texts that are shared."""

    _known: ClassVar[weakref.WeakValueDictionary[tuple[str, ...], Names]] = weakref.WeakValueDictionary()
    _making: ClassVar[threading.RLock] = threading.RLock()
    _tally: ClassVar[shared.Tally] = shared.TALLY

    def __init__(self, texts: tuple[str, ...], before: Names | None) -> None:
        """Index names; `before`: the first of them, which are indexed already."""
        self._size = 0
        self.texts = texts
        self.table, first = _room_for(len(texts), before)
        _index(texts, self.table, first)
        n_before = size = long = 0
        if before is not None:
            n_before, size, long = len(before), before.content_bytes, before.own_bytes
        more = texts[n_before:]
        self.content_bytes = size + sum(map(name_bytes, more))
        self.own_bytes = long + sum(sys.getsizeof(text) for text in more if len(text) > SHARED_LENGTH)
        self._size = sys.getsizeof(texts) + sys.getsizeof(self.table) + self.own_bytes + shared.INTERNED
        self._tally.hold(self._size)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Names:
        """Return the names in this order; ValueError if two are equal."""
        return cls._interned(tuple(texts), None)

    def with_more(self, texts: Iterable[str]) -> Names:
        """Return these names with more after them, in one step; ValueError if two are equal."""
        return self._interned((*self.texts, *texts), self)

    @classmethod
    def _interned(cls, texts: tuple[str, ...], before: Names | None) -> Names:
        names = cls._known.get(texts)
        if names is None:
            with cls._making:  # a partition may be restored in another thread
                names = cls._known.get(texts)
                if names is None:
                    indexed = () if before is None else before.texts
                    names = cls((*indexed, *map(_shared, texts[len(indexed) :])), before)
                    cls._known[names.texts] = names
        return names

    def __del__(self) -> None:
        """Subtract the size from the tally: the last user of the names is freed."""
        self._tally.give_up(self._size)

    def __len__(self) -> int:
        return len(self.texts)

    def code(self, text: str) -> int:
        """Return the code of a name, -1 if it is unknown."""
        table, texts = self.table, self.texts
        mask = len(table) - 1
        at = hash(text) & mask
        while code := table[at]:
            if texts[code - 1] == text:
                return code - 1
            at = (at + 1) & mask
        return -1

    def __repr__(self) -> str:
        return f"Names{self.texts!r}"


def _room_for(n: int, before: Names | None) -> tuple[array[int], int]:
    """Return a table for n names, at most half full, and how many names it already contains."""
    kind = "B" if n < 1 << 8 else "H" if n < 1 << 16 else "I"
    if before is not None and len(before.table) >= 2 * n:
        return array(kind, before.table), len(before)
    empty = array(kind, (0,))
    return empty * (1 << (2 * n - 1).bit_length() if n else 1), 0


def _index(texts: tuple[str, ...], table: array[int], first: int) -> None:
    """Put the names from `first` on into the table."""
    mask = len(table) - 1
    for code in range(first, len(texts)):
        text = texts[code]
        at = hash(text) & mask
        while number := table[at]:
            if texts[number - 1] == text:
                message = f"{text[:80]!r} must not occur twice"
                raise ValueError(message)
            at = (at + 1) & mask
        table[at] = code + 1


NO_NAMES: Final = Names.of(())
