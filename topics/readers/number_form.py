"""Forms of numbers: the decimal sign, and the sign between groups of digits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from topics.errors import DatasetError

DECIMALS = {".": ".", "point": ".", ",": ",", "comma": ","}
GROUPS = {
    **dict.fromkeys((",", "comma"), (",", ",")),
    **dict.fromkeys((".", "point"), (".", ".")),
    **dict.fromkeys(("'", "apostrophe"), ("'", "['\u2019]")),
    **dict.fromkeys((" ", "space"), (" ", "[ \xa0\u202f]")),
    **dict.fromkeys(("_", "underscore"), ("_", "_")),
}
"""Signs that may group thousands, by the spellings of the option: the sign in messages, and its pattern."""


@dataclass(frozen=True)
class NumberForm:
    """A form of numbers: `1234.5` by default, `1.234,5` with decimal `,` and thousands `.`."""

    decimal: str = "."
    group: str = ""
    """Pattern of one character between groups of digits; empty for none."""

    @classmethod
    def parse(cls, decimal: str | None, thousands: str | None) -> NumberForm:
        """Return the form that two options describe; raise DatasetError for an unknown form."""
        sign = DECIMALS.get(decimal or ".")
        if sign is None:
            message = f"decimal={decimal!r} must be . or ,"
            raise DatasetError(message)
        if thousands is None:
            return cls(sign)
        if thousands not in GROUPS:
            message = f"thousands={thousands!r} must be one of , . ' _ or the word space"
            raise DatasetError(message)
        shown, pattern = GROUPS[thousands]
        if shown == sign:
            message = (
                f"thousands={thousands!r} must differ from the decimal sign; numbers such as 1.234,5 have "
                "decimal=',' (--decimal ,) and thousands='.' (--thousands .)"
            )
            raise DatasetError(message)
        return cls(sign, re.escape(pattern) if len(pattern) == 1 else pattern)

    @property
    def is_plain(self) -> bool:
        return self.decimal == "." and not self.group

    @cached_property
    def pattern(self) -> str:
        """The pattern of a whole number, for `re` and for pyarrow's RE2 alike."""
        digits, sign = "[0-9]+", re.escape(self.decimal)
        if self.group:
            digits = f"(?:[0-9]{{1,3}}(?:{self.group}[0-9]{{2,3}})*{self.group}[0-9]{{3}}|[0-9]+)"
        return f"^[+-]?(?:{digits}(?:{sign}[0-9]*)?|{sign}[0-9]+)(?:[eE][+-]?[0-9]+)?$"

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern.removesuffix("$") + r"\Z")

    def matches(self, cell: str) -> bool:
        """Return whether a cell is a number of this form."""
        return self._compiled.match(cell) is not None

    def number(self, cell: str) -> float:
        """Return the value of a cell that matches."""
        digits = re.sub(self.group, "", cell) if self.group else cell
        return float(digits.replace(self.decimal, "."))

    def numbers(self, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return the values of texts without blanks around them, null for null; raise ArrowInvalid for other
        texts.
        """
        if not self.is_plain:
            if not pc.all(pc.match_substring_regex(cells, self.pattern), min_count=0).as_py():
                message = "a cell is no number of this form"
                raise pa.ArrowInvalid(message)
            if self.group:
                cells = pc.replace_substring_regex(cells, self.group, "")
            cells = pc.replace_substring(cells, self.decimal, ".")
        return pc.cast(cells, pa.float64())


PLAIN = NumberForm()

_DECIMAL_COMMA = NumberForm(",")
_GROUPED = NumberForm(".", ",")
_OTHER_FORMS = (
    (_GROUPED, "--thousands ,"),
    (_DECIMAL_COMMA, "--decimal ,"),
    (NumberForm(",", r"\."), "--decimal , --thousands ."),
    (NumberForm(".", "[ \u00a0\u202f]"), "--thousands space"),
    (NumberForm(",", "[ \u00a0\u202f]"), "--decimal , --thousands space"),
    (NumberForm(".", "['\u2019]"), '--thousands "\'"'),
)


def is_number_of_some_form(cell: str) -> bool:
    """Return whether a cell is a number, with any decimal sign and groups of digits."""
    return PLAIN.matches(cell) or any(form.matches(cell) for form, _ in _OTHER_FORMS)


def other_form(words: set[str], expected: NumberForm) -> str | None:
    """Return the error text if all cells are numbers of another form; None if they are words."""
    if not words:
        return None
    such = f"such as {min(words)!r}"
    if not expected.is_plain:
        if all(map(is_number_of_some_form, words)):
            return f"numbers {such} that do not fit --decimal and --thousands; write all numbers in one form"
        return None
    if all(map(_GROUPED.matches, words)) and all(map(_DECIMAL_COMMA.matches, words)):
        return (
            f"commas in its numbers {such}: read them as thousands separators (--thousands ,), or "
            "as decimal signs (--decimal ,)"
        )
    if all(map(_DECIMAL_COMMA.matches, words)):
        return f"decimal commas {such}; read them with --decimal , or write numbers with a point"
    for form, options in _OTHER_FORMS:
        if all(map(form.matches, words)):
            return f"thousands separators in its numbers {such}; read them with {options}"
    return None
