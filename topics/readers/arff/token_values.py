"""Cells of ARFF rows: the number or code of a token, by the kind of its attribute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from topics.readers.arff.tokens import BLANKS, ArffLineError, is_word, text_of
from topics.readers.delimited import NUMBER
from topics.readers.vocabulary import (
    NO_CODE,
    TooManyValuesError,
    UnknownValueError,
    Vocabulary,
    canonical_label,
)

MISSING_CELL = "?"

_NAN = frozenset(["NaN", "nan"])  # for numbers only: a declared value may be spelled like this
_SHOWN_TEXT = 60  # characters of a bad value in a message
_SHOWN_VALUES = 20


class Cells(Protocol):
    """The cells of one attribute."""

    def number(self, token: str) -> float:
        """Return the number or code of a token, NaN for a missing value; raise ArffLineError for an invalid
        token.
        """

    def unnamed(self) -> float:
        """Return the number or code for a sparse row that does not name the attribute."""


class NumericCells:
    """Cells of a numeric attribute."""

    def __init__(self, name: str) -> None:
        self.name = name

    def number(self, token: str) -> float:
        if token == MISSING_CELL:
            return math.nan
        text = text_of(token).strip(BLANKS)  # Java's parser of numbers does the same inside quotes
        if NUMBER.fullmatch(text):
            number = float(text)
            if math.isfinite(number):
                return number
        if text in _NAN:
            return math.nan
        finite = "finite " if NUMBER.fullmatch(text) or text.lower().lstrip("+-").startswith("inf") else ""
        message = f"{self.name}={_shown(text)} must be a {finite}number (or ? without quotes for missing)"
        raise ArffLineError(message)

    def unnamed(self) -> float:
        return 0.0


class NominalCells:
    """Cells of an attribute whose values are declared."""

    def __init__(self, name: str, values: Sequence[str]) -> None:
        self.name = name
        self._codes = {value: float(code) for code, value in enumerate(values)}
        self._spellings = {MISSING_CELL: math.nan}
        self._most = 4 * len(values) + 16  # a value has any number of spellings: 'a', "a", '\a', …

    def number(self, token: str) -> float:
        code = self._spellings.get(token)
        if code is not None:
            return code
        text = text_of(token)
        code = self._codes.get(text)
        if code is None:
            values = [value if is_word(value) else repr(value) for value in self._codes]
            listed = ", ".join(values[:_SHOWN_VALUES]) + (", …" if len(values) > _SHOWN_VALUES else "")
            message = f"{self.name}={_shown(text)} must be one of its declared values: {listed}"
            raise ArffLineError(message)
        if len(self._spellings) < self._most:
            self._spellings[token] = code
        return code

    def unnamed(self) -> float:
        return 0.0  # code 0, the first declared value, as Weka writes sparse rows


class NumericClassCells:
    """Cells of a numeric class; its distinct numbers, in order of appearance, are the classes."""

    def __init__(self, name: str, classes: Vocabulary) -> None:
        self.name = name
        self._classes = classes
        self._numeric = NumericCells(name)

    def number(self, token: str) -> float:
        return self._code(self._numeric.number(token))

    def unnamed(self) -> float:
        return self._code(0.0)

    def _code(self, number: float) -> float:
        if math.isnan(number):
            return math.nan
        try:
            return float(self._classes.code(canonical_label(repr(number))))
        except TooManyValuesError:
            limit = self._classes.limit
            message = (
                f"{self.name}={number!r} is distinct value number {limit + 1}; a class has at most {limit}: "
                f"choose another target (--target)"
            )
            raise ArffLineError(message) from None


class PlainSpellings(Vocabulary):
    """The vocabulary of cells without quotes between two commas, for the parser of whole blocks.

    A value that can only be written in quotes is unknown here; the block is then read line by line.
    """

    def __init__(self, cells: Cells, limit: int) -> None:
        super().__init__(limit=limit, is_open=False)
        self._cells = cells

    def code(self, text: str) -> int:
        """Return the code of the text between two commas, -1 for a missing value."""
        token = text.strip(BLANKS)
        if token == MISSING_CELL:
            return NO_CODE
        if not is_word(token):
            raise UnknownValueError(text)
        try:
            number = self._cells.number(token)
        except ArffLineError:
            raise UnknownValueError(text) from None
        return NO_CODE if math.isnan(number) else int(number)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_TEXT else text[:_SHOWN_TEXT] + "…")
