"""Vocabulary: the values of a nominal column or the class names, and the code of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

MISSING = frozenset(
    [
        "",
        "?",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
    ]
)
"""Texts for a missing value in a CSV file: the words of pandas.read_csv, and the `?` of Weka."""

NO_CODE = -1
"""Code of a missing value, and of a row without a label."""

_INTEGRAL = re.compile(r"([+-]?)(0|[1-9][0-9]*)(?:\.0*)?")


class UnknownValueError(Exception):
    """A value that a closed vocabulary does not have; the reader adds file and line."""


class TooManyValuesError(Exception):
    """More distinct values than an open vocabulary may learn; the reader adds file and line."""


def canonical_label(text: str) -> str:
    """Return the class name of a label: integral numbers without sign and fraction, other texts unchanged.

    So a class has the same name in a file ("+1", "1.0") and in a JSON record (1).

    >>> canonical_label("+1"), canonical_label("-1.0"), canonical_label("2.5"), canonical_label("007")
    ('1', '-1', '2.5', '007')
    """
    match = _INTEGRAL.fullmatch(text)
    if match is None:
        return text
    sign, digits = match.groups()
    return "-" + digits if sign == "-" and digits != "0" else digits


class Vocabulary:
    """Values in the order of their codes: declared (closed), or discovered in the order of first appearance
    (open).

    `canonical` maps a spelling to its value; the results are cached, so it runs once for each spelling.
    """

    def __init__(
        self,
        values: Iterable[str] = (),
        *,
        limit: int,
        is_open: bool = True,
        canonical: Callable[[str], str] | None = None,
        missing: frozenset[str] = MISSING,
    ) -> None:
        """Begin with `values`."""
        self.limit = limit
        self.is_open = is_open
        self._canonical = canonical
        self._missing = missing
        self._values: list[str] = []
        self._codes: dict[str, int] = {}
        self._spellings: dict[str, int] = {}
        for value in values:
            name = canonical(value) if canonical else value
            if name not in self._codes:
                self._codes[name] = len(self._values)
                self._values.append(name)

    @property
    def values(self) -> tuple[str, ...]:
        """Return the values seen so far, in code order."""
        return tuple(self._values)

    def __len__(self) -> int:
        """Return the number of values seen so far."""
        return len(self._values)

    def code(self, text: str) -> int:
        """Return the code of a spelling, NO_CODE for "missing"; add a new value if the vocabulary is open.

        Blanks count: a reader whose format ignores blanks around values removes them first.
        """
        code = self._spellings.get(text)
        if code is None:
            code = self._code_of_new(text)
            # A stream with many spellings of few values must not grow the cache without bound.
            if len(self._spellings) < 2 * self.limit:
                self._spellings[text] = code
        return code

    def _code_of_new(self, text: str) -> int:
        if text in self._missing:
            return NO_CODE
        name = self._canonical(text) if self._canonical else text
        code = self._codes.get(name)
        if code is not None:
            return code
        if not self.is_open:
            raise UnknownValueError(text)
        if len(self._values) >= self.limit:
            raise TooManyValuesError(text)
        self._codes[name] = len(self._values)
        self._values.append(name)
        return self._codes[name]

    def codes(self, texts: Sequence[str | None]) -> npt.NDArray[np.int32]:
        """Return the codes of n spellings, NO_CODE for None or missing: int32[n]."""
        return np.fromiter(
            (NO_CODE if text is None else self.code(text) for text in texts), dtype=np.int32, count=len(texts)
        )
