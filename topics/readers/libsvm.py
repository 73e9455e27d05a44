"""LIBSVM: `label index:value index:value … # comment`, one row per line, zeros left out.

- Indices count from 1 (`zero_based` for files that count from 0), in any order, each at most once per line.
- The number of attributes is not in the file. Without `features` the whole file is read once to find the
  largest index (and the classes, numbered by value then); with `features=d` there is no such scan, classes
  are numbered by first appearance, and a larger index is an error.
- Labels are numbers: -1/+1, 0/1 or any k different numbers; class names are canonical (`+1` is `1`).
- An attribute that a line does not name is 0, never missing; `nan` is missing; infinity is refused.
- Ranking data (`qid:`) and several labels per line are refused. A label without pairs is a row of zeros.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from topics.errors import DatasetError
from topics.readers.dataset import CLASSES_LIMIT, Batch, FileDataset
from topics.readers.delimited import NUMBER
from topics.readers.source import LineBlock, blocks
from topics.readers.vocabulary import TooManyValuesError, UnknownValueError, Vocabulary, canonical_label

CHUNK_BYTES = 32 << 20  # bytes of dense rows made at once
MOST_FEATURES = 1_000_000  # rows are dense

_COMMENT = re.compile(rb"#[^\n]*")
_BLANK = np.zeros(256, dtype=bool)
_BLANK[list(b" \t\r\n\v\f")] = True
_SEPARATORS = bytes.maketrans(b": \t\r\v\f", b"\n" * 6)  # one number per line
_APART = re.compile(r"[,;][0-9]+:")
_INDEX = re.compile(r"[+]?[0-9]+")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows of a block, sparse."""

    label: npt.NDArray[np.float64]  # float64[m]
    start: npt.NDArray[np.int64]  # int64[m + 1]: pairs of row i are start[i] … start[i + 1]
    index: npt.NDArray[np.int64]  # int64[p], counted from 0
    value: npt.NDArray[np.float64]  # float64[p]


class LibsvmDataset(FileDataset):
    """Rows of one or more LIBSVM files, dense."""

    format = "libsvm"

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        labelled: bool = True,
        features: int | None = None,
        zero_based: bool = False,
        classes: Sequence[str] | None = None,
    ) -> None:
        """Find the number of attributes and the classes, unless they are given."""
        if features is not None and not 1 <= features <= MOST_FEATURES:
            message = f"features={features} must be from 1 to {MOST_FEATURES}"
            raise DatasetError(message)
        self._first = 0 if zero_based else 1
        self._labelled = labelled
        self._limit = features or MOST_FEATURES
        vocabulary = Vocabulary(
            classes or (), limit=CLASSES_LIMIT, is_open=classes is None, canonical=canonical_label
        )
        rows = None
        if features is None:
            most = CLASSES_LIMIT if labelled and classes is None else None
            features, rows, labels = self._scan(paths, most)
            if most is not None:
                vocabulary.codes([_name(label) for label in sorted(labels)])
        names = [f"f{number}" for number in range(1, features + 1)]
        super().__init__(paths, names, [None] * features, "class" if labelled else None, vocabulary)
        self.rows = rows

    def _scan(self, paths: Sequence[Path], most: int | None) -> tuple[int, int, set[float]]:
        """Return the number of attributes, of rows, and the labels: at most `most` different labels."""
        largest, rows = -1, 0
        labels: set[float] = set()
        for path in paths:
            for pairs, block in self._pairs(path):
                largest = max(largest, int(pairs.index.max(initial=-1)))
                rows += len(pairs.label)
                new = set(np.unique(pairs.label).tolist()) - labels
                if most is not None and len(labels) + len(new) > most:
                    raise _too_many(path, block, pairs, labels, most)
                labels |= new
        if largest < 0:
            message = "no index:value in any line; LIBSVM rows look like '+1 3:1 11:0.5'"
            raise DatasetError(message, str(paths[0]))
        return largest + 1, rows, labels

    def _chunks(self) -> Iterator[Batch]:
        d = len(self.names)
        at_once = max(1, CHUNK_BYTES // (8 * d))
        for path in self.paths:
            for pairs, block in self._pairs(path):
                y = self._codes(pairs.label, path, block)
                row = np.repeat(np.arange(len(y)), np.diff(pairs.start))
                for first in range(0, len(y), at_once):
                    last = min(first + at_once, len(y))
                    span = slice(pairs.start[first], pairs.start[last])
                    x = np.zeros((last - first, d))
                    x[row[span] - first, pairs.index[span]] = pairs.value[span]
                    yield x, y[first:last]

    def _codes(self, labels: npt.NDArray[np.float64], path: Path, block: LineBlock) -> npt.NDArray[np.int32]:
        """Return the class codes of labels: int32[m]."""
        if not self._labelled:
            return np.full(len(labels), -1, dtype=np.int32)
        distinct, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        codes = np.empty(len(distinct), dtype=np.int32)
        for at in np.argsort(first):  # by first appearance
            try:
                codes[at] = self._classes.code(_name(distinct[at]))
            except TooManyValuesError:
                row = int(first[at])
                message = _too_many_labels(distinct[at], self._classes.limit)
                raise DatasetError(message, str(path), _line_of_row(block, row)) from None
            except UnknownValueError:
                message = (
                    f"label {_name(distinct[at])} must be one of the {len(self.classes)} classes "
                    f"{', '.join(self.classes[:20])}"
                )
                raise DatasetError(message, str(path), _line_of_row(block, int(first[at]))) from None
        answer: npt.NDArray[np.int32] = codes[inverse]
        return answer

    def _pairs(self, path: Path) -> Iterator[tuple[Pairs, LineBlock]]:
        """Yield the rows of a file block by block, checked."""
        for block in blocks(path):
            text = _COMMENT.sub(b"", block.text) if b"#" in block.text else block.text
            pairs = parsed(text, self._first)
            if pairs is None or not self._good(pairs):
                raise self._blame(path, block)
            if len(pairs.label):
                yield pairs, block

    def _good(self, pairs: Pairs) -> bool:
        """Return whether indices are in range and differ within each row, and numbers are finite."""
        if not np.isfinite(pairs.label).all() or np.isinf(pairs.value).any():
            return False
        if pairs.index.min(initial=0) < 0 or pairs.index.max(initial=-1) >= self._limit:
            return False
        row = np.repeat(np.arange(len(pairs.label)), np.diff(pairs.start))
        if ((np.diff(pairs.index) > 0) | (np.diff(row) > 0)).all():
            return True
        # Indices out of order are valid, repeated indices are not.
        order = np.lexsort((pairs.index, row))
        again = (np.diff(row[order]) == 0) & (np.diff(pairs.index[order]) == 0)
        return not again.any()

    def _blame(self, path: Path, block: LineBlock) -> DatasetError:
        """Return the exception that names the first bad line of a block and the rule it breaks."""
        for number, raw in enumerate(block.text.split(b"\n"), block.line):
            tokens = raw.split(b"#")[0].decode("utf-8", "replace").split()
            message = self._complaint(tokens) if tokens else None
            if message:
                return DatasetError(message, str(path), number)
        return DatasetError("cannot be read as LIBSVM", str(path), block.line)

    def _complaint(self, tokens: list[str]) -> str | None:
        """Return the error in the tokens of a line, or None."""
        label, *pairs = tokens
        if not _finite(label):
            return _label_complaint(label)
        seen: set[int] = set()
        for pair in pairs:
            index, colon, value = pair.partition(":")
            if index == "qid":
                return (
                    f"{pair[:40]!r}: ranking data cannot be read, rows are taken one by one; remove each qid:"
                )
            if not colon or not _INDEX.fullmatch(index):
                return f"{pair[:40]!r} must be index:value; rows look like '+1 3:1 11:0.5'"
            if int(index) < self._first:
                return f"index {index} must be at least 1; if the file counts from 0, add --zero-based"
            if int(index) - self._first >= self._limit:
                most = self._limit - 1 + self._first
                return f"index {index} must be at most {most} (features={self._limit})"
            if int(index) in seen:
                return f"index {index} occurs twice in the row"
            seen.add(int(index))
            if not value:
                return f"{pair[:40]!r} must be index:value without a blank after the colon"
            if "," in value:
                return (
                    f"{pair[:40]!r} has a comma; blanks separate pairs, and numbers have a point (1:0.5); "
                    "if this is no LIBSVM, add --format csv"
                )
            if value.lower() != "nan" and not _finite(value):
                return f"{pair[:40]!r} must have a finite number (or nan for missing) after the colon"
        return None


def parsed(text: bytes, first: int) -> Pairs | None:
    """Return the rows of whole lines without comments; None if any line is not `number (index:value)*`.

    Numbers are parsed at once; the places of colons and blanks give their rows and columns.
    """
    characters = np.frombuffer(text, dtype=np.uint8)
    blank = _BLANK[characters]
    if blank.all():
        return Pairs(np.empty(0), np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0))
    token = np.flatnonzero(np.concatenate(([True], blank[:-1])) & ~blank)  # starts of tokens
    line_end = np.flatnonzero(characters == ord("\n"))
    colon = np.flatnonzero(characters == ord(":"))
    line = np.searchsorted(line_end, token)  # line of each token
    is_label = np.concatenate(([True], np.diff(line) > 0))
    # Every token except the labels has exactly one colon: then numbers and places agree.
    owner = np.searchsorted(token, colon, side="right") - 1
    if not np.array_equal(owner, np.flatnonzero(~is_label)):
        return None
    numbers = _numbers(text)
    if numbers is None or len(numbers) != len(token) + len(colon):
        return None
    width = np.where(is_label, 1, 2)
    place = np.cumsum(width) - width  # first number of each token
    pair = place[~is_label]
    index = numbers[pair]
    whole = index.astype(np.int64)
    if not np.array_equal(whole, index):
        return None
    label_token = np.flatnonzero(is_label)
    start = np.append(label_token - np.arange(len(label_token)), len(colon))
    return Pairs(numbers[place[is_label]], start, whole - first, numbers[pair + 1])


def _numbers(text: bytes) -> npt.NDArray[np.float64] | None:
    """Return all numbers of a text in order, float64[n]; None if it holds anything else."""
    try:
        table = pacsv.read_csv(
            pa.py_buffer(text.translate(_SEPARATORS)),
            read_options=pacsv.ReadOptions(column_names=["n"], use_threads=False, block_size=len(text) + 1),
            parse_options=pacsv.ParseOptions(quote_char=False),
            convert_options=pacsv.ConvertOptions(column_types={"n": pa.float64()}, null_values=[]),
        )
    except pa.ArrowInvalid:
        return None
    numbers: npt.NDArray[np.float64] = table.column("n").to_numpy()
    return numbers


def _too_many(path: Path, block: LineBlock, pairs: Pairs, classes: set[float], most: int) -> DatasetError:
    """Return the exception that names the line of the first label beyond the limit."""
    labels = set(classes)
    for row, label in enumerate(pairs.label.tolist()):
        labels.add(label)
        if len(labels) > most:
            return DatasetError(_too_many_labels(label, most), str(path), _line_of_row(block, row))
    raise AssertionError(most)


def _too_many_labels(label: float, most: int) -> str:
    return (
        f"label {_name(label)} is distinct label number {most + 1}; a file has at most {most} classes: "
        f"numbers to predict (regression) must be made classes before"
    )


def _label_complaint(label: str) -> str:
    """Return the rule that a label breaks if it is not a finite number."""
    if "," in label and all(_finite(part) for part in label.split(",") if part):
        return f"label {label[:40]!r} must be one finite number; a row has one class: keep one label a line"
    if _APART.search(label):
        return (
            f"{label[:40]!r} must be a label and pairs with blanks between them, such as '+1 3:1 11:0.5'; if "
            "this is no LIBSVM, add --format csv"
        )
    if ":" in label:
        return f"label {label[:40]!r} must be one finite number; the line begins with a pair"
    return f"label {label[:40]!r} must be one finite number; rows look like '+1 3:1 11:0.5'"


def _finite(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None and bool(np.isfinite(float(text)))


def _name(label: float) -> str:
    return canonical_label(repr(float(label)))


def _line_of_row(block: LineBlock, row: int) -> int:
    at = -1
    for number, raw in enumerate(block.text.split(b"\n"), block.line):
        at += bool(raw.split(b"#")[0].strip())
        if at == row:
            return number
    return block.line
