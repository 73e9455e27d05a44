"""File layout: which columns of a file are attributes, the class, or left out."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from topics.errors import DatasetError
from topics.readers.vocabulary import Vocabulary

ColumnRef = str | int  # a name, or an index from 0 (from -1 backwards)

SHOWN_COLUMNS = 30


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a file: numeric, or nominal with its values."""

    name: str
    vocabulary: Vocabulary | None  # None: numeric


@dataclass(frozen=True, slots=True)
class FileLayout:
    """All columns of a file in file order, with their uses."""

    columns: tuple[Column, ...]
    features: tuple[int, ...]  # indices of the attributes
    target: int | None  # index of the class; None: the rows have none
    empty: tuple[int, ...] = ()  # indices of columns that must be empty

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the attributes."""
        return tuple(self.columns[j].name for j in self.features)

    @property
    def used(self) -> tuple[int, ...]:
        """Return the indices of the attributes and of the class."""
        return self.features if self.target is None else (*self.features, self.target)

    @property
    def read(self) -> tuple[int, ...]:
        """Return the indices of all columns whose cells are read."""
        return (*self.used, *self.empty)

    @property
    def vocabularies(self) -> tuple[Vocabulary | None, ...]:
        """Return the vocabulary of each attribute, None for a numeric attribute."""
        return tuple(self.columns[j].vocabulary for j in self.features)


def default_target(names: Sequence[str], columns: Sequence[int]) -> int | None:
    """Return the index, among `columns`, of the default class.

    The default is the column `class`, else the first one with that name in other letter case (`Class`), else
    the last one.
    """
    called = [j for j in columns if names[j].lower() == "class"]
    exact = [j for j in called if names[j] == "class"]
    return next(iter(exact + called + list(columns[-1:])), None)


def find_column(names: Sequence[str], ref: ColumnRef, what: str, path: str) -> int:
    """Return the index of the column that a name or number refers to; `what` is the option's name."""
    if isinstance(ref, str) and ref in names:
        return names.index(ref)
    index = _integer(ref)
    if index is not None and -len(names) <= index < len(names):
        return index % len(names)
    shown = ", ".join(names[:SHOWN_COLUMNS]) + (", …" if len(names) > SHOWN_COLUMNS else "")
    close = difflib.get_close_matches(str(ref), names, 1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    message = (
        f"{what}={ref!r} must name one of the {len(names)} columns or be an index from 0 to {len(names) - 1}"
        f"{hint}: {shown}"
    )
    raise DatasetError(message, path)


def _integer(ref: ColumnRef) -> int | None:
    try:
        return int(ref)
    except ValueError:
        return None


def check_names(names: Sequence[str], path: str, line: int | None = None) -> None:
    """Refuse names that occur twice: attributes are found by name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            message = f"column {name!r} occurs twice; names must differ"
            raise DatasetError(message, path, line)
        seen.add(name)
