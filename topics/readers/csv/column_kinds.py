"""Columns of a CSV file: their names, uses and kinds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from topics.errors import DatasetError
from topics.readers.csv.header import unique_names
from topics.readers.csv.record_cells import Record
from topics.readers.csv.record_chunks import Dialect
from topics.readers.dataset import CLASSES_LIMIT, VALUES_LIMIT
from topics.readers.delimited import INFINITY
from topics.readers.file_layout import Column, ColumnRef, FileLayout, default_target, find_column
from topics.readers.number_form import NumberForm, other_form
from topics.readers.vocabulary import Vocabulary, canonical_label

Nominal = Mapping[str, Sequence[str]] | Sequence[ColumnRef]

RARE = 100
"""Up to one word in this many cells of a column of numbers is an error; with more the column is nominal."""
MOST_TOTALS = 5
"""Up to this many lines with words below all numbers of a column are an error, such as a mean and a total."""
ROW_NUMBERS_FROM = 10

_SIGN, _CURRENCY = "[-+\u2212]?", "[$€£¥]?"
# Numbers for a person, but words for pandas and Weka: 12%, $5, (5), <5, 5 kg, 1_000, 0x1F.
_MEASURE = re.compile(
    rf"[<>~≤≥]?\s*\(?{_SIGN}\s*{_CURRENCY}\s*{_SIGN}\d[\d.,_]*\s*(?:[%‰$€£¥]|(?<=\s)[A-Za-z°µ]{{1,4}})?\)?"
    r"|0[xX][0-9A-Fa-f]+"
)
_OTHERS = re.compile(r"[,;\t|]")
_SEVERAL = re.compile(r"[\s:,;|^~\x01]")


@dataclass(frozen=True)
class Named:
    """The columns of a file in file order."""

    names: list[str]
    rows: list[Record]  # the first rows that have a cell for each column
    empty: tuple[int, ...]  # at the end, without name and value: each line ends with a delimiter
    row_names: bool  # the first column has no cell in the header
    unnamed: frozenset[int] = frozenset()  # without a name in the header
    guesses: tuple[str, ...] = ()
    header: bool = True


@dataclass(frozen=True)
class ColumnOptions:
    """Options that the user gives for the columns of a file."""

    target: ColumnRef | None
    labelled: bool
    nominal: Nominal
    ignore: Sequence[ColumnRef]
    classes: Sequence[str] | None


@dataclass
class _Cells:
    """Counts of the numbers, words and missing cells in the first rows of a column."""

    numbers: int = 0
    words: Counter[str] = field(default_factory=Counter)
    lines: dict[str, int] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)
    last_number: int = 0  # line of the last number


def named(rows: Sequence[Record], header: bool, path: str) -> Named:
    """Return the names of all columns; raise DatasetError if the first row does not fit the rest."""
    if not rows:
        message = "has no rows"
        raise DatasetError(message, path)
    first, below = (rows[0].cells, rows[1:]) if header else ([""] * len(rows[0].cells), rows)
    widths = {len(row.cells) for row in rows[1:]}
    row_names = False
    if len(widths) == 1 and widths != {len(first)}:
        width = widths.pop()
        if header and len(first) == width - 1:
            row_names = any(row.cells[-1] for row in below)
            first = ["", *first] if row_names else [*first, ""]
        elif header and len(first) == width + 1 and not first[-1]:
            first = first[:-1]
        elif len(rows) > 2:
            message = (
                f"{len(first)} values must be {width} as in the lines below; leave out the lines before "
                f"the header or the first row with --skip-lines {rows[0].end_line - 1}"
            )
            raise DatasetError(message, path, rows[0].line)
    again = next((row for row in below if row.cells == first), None) if header else None
    if again is not None:
        message = "the header comes again as a row; delete this line"
        raise DatasetError(message, path, again.line)
    whole = [row for row in below if len(row.cells) == len(first)]
    _check_apostrophes(whole, path)
    names, twice = unique_names(first)
    empty: list[int] = []
    for j in reversed(range(2, len(first))):
        if first[j] or not whole or any(row.cells[j] for row in whole):
            break
        empty.append(j)
    guesses = [f"columns that come twice are called {name}.1, …" for name in dict.fromkeys(twice)]
    if row_names:
        guesses.append("the first column has no name in the header and is left out, as names of the rows")
    if empty:
        guesses.append("lines end with a delimiter and no value after it")
    unnamed = frozenset(j for j, name in enumerate(first) if not name) if header else frozenset()
    return Named(names, whole, tuple(empty), row_names, unnamed, tuple(guesses), header)


def lay_out(
    path: str, columns: Named, dialect: Dialect, options: ColumnOptions
) -> tuple[FileLayout, list[str]]:
    """Return the kind of each column, as declared or from its first cells, and the guesses made."""
    names, guesses = columns.names, list(columns.guesses)
    ignored = {find_column(names, ref, "ignore", path) for ref in options.ignore}
    used = [j for j in range(len(names)) if j not in ignored and j not in columns.empty]
    if columns.row_names:
        used = [j for j in used if j]
    cells = {j: _cells_of(columns.rows, j, dialect) for j in used}
    named_columns = [j for j in used if j not in columns.unnamed] or used
    chosen = _target(path, names, named_columns, cells, options, guesses)
    if chosen is not None and len(names) == 1:
        _check_one_column(path, columns.rows, dialect.delimiter)
    declared: dict[int, Sequence[str] | None] = {}
    for ref in options.nominal:
        listed = options.nominal.get(str(ref)) if isinstance(options.nominal, Mapping) else None
        declared[find_column(names, ref, "nominal", path)] = listed or None
    first = None if columns.header or not columns.rows else columns.rows[0].line
    laid = []
    for j, name in enumerate(names):
        vocabulary: Vocabulary | None = None
        if j == chosen:
            vocabulary = Vocabulary(
                options.classes or (),
                limit=CLASSES_LIMIT,
                is_open=options.classes is None,
                canonical=canonical_label,
                missing=dialect.missing,
            )
        elif j in declared:
            listed = declared[j]
            vocabulary = Vocabulary(
                listed or (), limit=VALUES_LIMIT, is_open=listed is None, missing=dialect.missing
            )
        elif j in columns.empty or (
            j in cells and _is_nominal(path, name, cells[j], dialect.numbers, guesses, first)
        ):
            vocabulary = Vocabulary(limit=VALUES_LIMIT, missing=dialect.missing)
        laid.append(Column(name, vocabulary))
        if vocabulary is not None and j in cells:
            guesses += _missing_words(name, cells[j])
    features = tuple(j for j in used if j != chosen)
    guesses += _row_numbers(names, features, columns.rows)
    guesses += _apostrophes(names, used, columns.rows)
    return FileLayout(tuple(laid), features, chosen, columns.empty), guesses


def _cells_of(rows: Sequence[Record], j: int, dialect: Dialect) -> _Cells:
    cells = _Cells()
    for row in rows:
        cell = row.cells[j]
        if cell in dialect.missing:
            cells.missing[cell] += 1
        elif dialect.numbers.matches(cell.strip()):
            cells.numbers += 1
            cells.last_number = row.line
        elif not INFINITY.fullmatch(cell):
            # Infinity alone does not make a column nominal: it is refused as a number in its row.
            cells.words[cell] += 1
            cells.lines.setdefault(cell, row.line)
    return cells


def _target(
    path: str,
    names: Sequence[str],
    candidates: Sequence[int],
    cells: Mapping[int, _Cells],
    options: ColumnOptions,
    guesses: list[str],
) -> int | None:
    """Return the index of the class: the column named by an option, else the default among columns with
    values.
    """
    if not options.labelled:
        return None
    if options.target is not None:
        return find_column(names, options.target, "target", path)
    filled = [j for j in candidates if cells[j].numbers or cells[j].words]
    last = default_target(names, candidates)
    if last is None or names[last].lower() == "class":
        return last
    chosen = default_target(names, filled or candidates)
    if chosen != last:
        guesses.append(f"column {names[last]!r} is empty and not the target")
    return chosen


def _is_in_apostrophes(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == cell[-1] == "'"


def _check_apostrophes(rows: Sequence[Record], path: str) -> None:
    """Refuse rows of which each has a value in apostrophes that holds the delimiter, such as '1,234'."""
    cut = set(range(len(rows[0].cells) - 1)) if rows else set()
    for row in rows:
        cut = {j for j in cut if _is_cut(row.cells[j], row.cells[j + 1])}
        if not cut:
            return
    for j in sorted(cut):
        begin, end = rows[0].cells[j : j + 2]
        message = (
            f'{begin!r} and {end!r} are two cells, because apostrophes hold no value together; write " in '
            "their place, or remove them"
        )
        raise DatasetError(message, path, rows[0].line)


def _is_cut(begin: str, end: str) -> bool:
    """Return whether two cells look like one value in apostrophes."""
    if _is_in_apostrophes(begin) or _is_in_apostrophes(end):
        return False
    return begin.startswith("'") and end.endswith("'")


def _apostrophes(names: Sequence[str], columns: Sequence[int], rows: Sequence[Record]) -> list[str]:
    """Return a guess if columns have all their values in apostrophes."""
    for j in columns:
        cells = [row.cells[j] for row in rows if row.cells[j]]
        if cells and all(map(_is_in_apostrophes, cells)):
            return [
                f'apostrophes are part of values such as {cells[0][:40]} in column {names[j]!r} (write " in '
                "their place if they are quotes)"
            ]
    return []


def _check_one_column(path: str, rows: Sequence[Record], delimiter: str) -> None:
    """Refuse a file in which no delimiter was found, if its lines hold more than one value."""
    several = next((row for row in rows if _SEVERAL.search(row.cells[0].strip())), None)
    if several is not None:
        if delimiter in several.cells[0]:
            message = (
                f"{several.cells[0][:60]!r} is one value, because the whole line stands in quotes; remove "
                "the quotes around the lines"
            )
            raise DatasetError(message, path, several.line)
        if _OTHERS.search(several.cells[0]):
            message = (
                f"{several.cells[0][:60]!r} is one value where cells are separated by {delimiter!r}; name "
                "another delimiter (--delimiter)"
            )
            raise DatasetError(message, path, several.line)
        message = (
            f"{several.cells[0][:60]!r} is one value: neither , ; tab | nor blanks cut all lines into the "
            "same number of values; name the delimiter (--delimiter), or another format (--format). In "
            "LIBSVM files each line is a label and index:value pairs"
        )
        raise DatasetError(message, path, several.line)


def _is_nominal(
    path: str, name: str, cells: _Cells, numbers: NumberForm, guesses: list[str], first: int | None
) -> bool:
    """Return whether a column holds words; raise DatasetError if its numbers may have another form.

    `first` is the line of the first row if the file has no header.
    """
    words = cells.words
    if not words:
        return False
    other = other_form(set(words), numbers)
    if other:
        message = f"column {name!r} has {other}; if they are names, add --nominal {name}"
        raise DatasetError(message, path)
    odd, number = sum(words.values()), cells.numbers
    below_all = odd < number and odd <= MOST_TOTALS and min(cells.lines.values()) > cells.last_number
    if number > 1 and (below_all or odd <= max(1, (odd + number) // RARE)):
        word = min(words, key=cells.lines.__getitem__)
        names = "add --header if this line holds the names, " if cells.lines[word] == first else ""
        message = (
            f"{name}={word[:60]!r} is a word in a column of numbers ({number:,} of its first "
            f"{odd + number:,} cells); {names}delete the line, name the word for a missing value "
            f"(--missing {word[:20]!r}), or declare the column nominal (--nominal {name})"
        )
        raise DatasetError(message, path, cells.lines[word])
    if number:
        word = min(words, key=cells.lines.__getitem__)
        guesses.append(
            f"column {name!r} is nominal, because {odd:,} of its first {odd + number:,} cells are words such "
            f"as {word[:40]!r} (else --missing)"
        )
    elif len(words) > 1 and all(map(_MEASURE.fullmatch, words)):
        guesses.append(f"column {name!r} is nominal, because cells such as {min(words)!r} are no numbers")
    return True


def _missing_words(name: str, cells: _Cells) -> list[str]:
    """Return the words of a column that count as missing values."""
    return [
        f"{word!r} in column {name!r} is a missing value (else --missing '?')"
        for word in cells.missing
        if any(map(str.isalpha, word)) and (cells.words or cells.numbers)
    ]


def _row_numbers(names: Sequence[str], features: Sequence[int], rows: Sequence[Record]) -> list[str]:
    """Return a guess if the first column counts the rows, which carries no information about the class."""
    if not features or features[0] != 0 or len(rows) < ROW_NUMBERS_FROM:
        return []
    if any([row.cells[0] for row in rows] == [str(n + first) for n in range(len(rows))] for first in (0, 1)):
        return [f"column {names[0]!r} counts the rows (leave it out with --ignore {names[0]})"]
    return []
