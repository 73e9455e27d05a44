"""Data set: attributes, classes, and batches of rows as columns.

`Dataset` is the protocol; the readers of this package implement it through `FileDataset`. A caller may pass
any other object with this protocol to replay and oracle, such as a generator of `core.streams`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from topics.errors import DatasetError
from topics.readers.vocabulary import Vocabulary

Kind = Literal["numeric", "nominal"]
Batch: TypeAlias = tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]

ROWS = 4096
BATCH_BYTES = 64 << 20  # bytes of x: a batch of very wide rows has fewer rows than requested
CLASSES_LIMIT = 1024  # a target with more distinct values is not a class
VALUES_LIMIT = 100_000  # a column with more distinct values is an identifier or text


@runtime_checkable
class Dataset(Protocol):
    """Rows with a class, read once or many times, always in the same order with the same codes.

    Discovered values and classes are numbered by first appearance: `values` and `classes` grow while batches
    are read, and the meaning of a code never changes.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Return the d attribute names; the class is not among them."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kind of each attribute."""

    @property
    def values(self) -> tuple[tuple[str, ...], ...]:
        """Return the values of each attribute in code order: declared, or seen so far; () for a numeric
        attribute.
        """

    @property
    def open(self) -> tuple[bool, ...]:
        """Return for each attribute whether its values are discovered; False if declared or numeric."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the class names in code order: declared, or seen so far."""

    @property
    def classes_open(self) -> bool:
        """Return whether classes are discovered."""

    @property
    def rows(self) -> int | None:
        """Return the number of rows, None while it is unknown."""

    def batches(self, size: int = ROWS, start: int = 0) -> Iterator[Batch]:
        """Yield (x, y) from row `start` on, at most `size` rows each.

        x is float64[m, d] in C order: numbers, codes of nominal values, NaN for missing values. y is
        int32[m], class codes, -1 for no label.
        """


@dataclass(frozen=True, slots=True)
class DatasetAttribute:
    """An attribute of a described data set."""

    name: str
    kind: Kind
    values: tuple[str, ...]
    open: bool


@dataclass(frozen=True, slots=True)
class DatasetDescription:
    """A data set, described in words."""

    format: str
    origin: tuple[str, ...]  # files
    target: str | None
    attributes: tuple[DatasetAttribute, ...]
    classes: tuple[str, ...]
    classes_open: bool
    rows: int | None


class FileDataset(ABC):
    """A data set in one or more files, read in order."""

    format: str
    guesses: tuple[str, ...] = ()
    """Decisions of the reader, each with the option that overrides it."""

    def __init__(
        self,
        paths: Sequence[Path],
        names: Sequence[str],
        vocabularies: Sequence[Vocabulary | None],
        target: str | None,
        classes: Vocabulary,
    ) -> None:
        """Describe the rows: one vocabulary for each nominal attribute, None for each numeric one."""
        self.paths = tuple(paths)
        self.names = tuple(names)
        self.target = target
        self.rows: int | None = None
        self._vocabularies = tuple(vocabularies)
        self._classes = classes

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kind of each attribute."""
        return tuple("numeric" if v is None else "nominal" for v in self._vocabularies)

    @property
    def values(self) -> tuple[tuple[str, ...], ...]:
        """Return the values of each attribute seen so far, in code order; () for a numeric attribute."""
        return tuple(() if v is None else v.values for v in self._vocabularies)

    @property
    def open(self) -> tuple[bool, ...]:
        """Return for each attribute whether its values are discovered."""
        return tuple(v is not None and v.is_open for v in self._vocabularies)

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the class names seen so far, in code order."""
        return self._classes.values

    @property
    def classes_open(self) -> bool:
        return self._classes.is_open

    def batches(self, size: int = ROWS, start: int = 0) -> Iterator[Batch]:
        """Yield (x: float64[m, d], y: int32[m]) from row `start` on, at most `size` rows each.

        Rows before `start` are parsed too: the codes of discovered values depend on them.
        """
        if size < 1:
            message = f"size={size} must be at least 1"
            raise ValueError(message)
        fitting = max(1, BATCH_BYTES // (8 * max(1, len(self.names))))
        return rebatched(self._counted(), min(size, fitting), start)

    def _counted(self) -> Iterator[Batch]:
        rows = 0
        for x, y in self._chunks():
            rows += len(y)
            yield x, y
        self.rows = rows
        if not rows:
            message = "has no rows; name a file with at least one"
            raise DatasetError(message, str(self.paths[0]))

    @abstractmethod
    def _chunks(self) -> Iterator[Batch]:
        """Yield all rows in chunks of the reader's own size."""

    def describe(self) -> DatasetDescription:
        """Return the data set in words."""
        attributes = tuple(
            DatasetAttribute(*columns)
            for columns in zip(self.names, self.kinds, self.values, self.open, strict=True)
        )
        origin = tuple(str(path) for path in self.paths)
        return DatasetDescription(
            self.format, origin, self.target, attributes, self.classes, self.classes_open, self.rows
        )


def rebatched(chunks: Iterable[Batch], size: int, start: int = 0) -> Iterator[Batch]:
    """Yield the rows of `chunks` from row `start` on in batches of `size`, the last one smaller."""
    waiting: list[Batch] = []
    n_waiting = 0
    skip = start
    for x, y in chunks:
        if skip >= len(y):
            skip -= len(y)
            continue
        at = skip
        skip = 0
        while at < len(y):
            size_taken = min(size - n_waiting, len(y) - at)
            waiting.append((x[at : at + size_taken], y[at : at + size_taken]))
            n_waiting += size_taken
            at += size_taken
            if n_waiting == size:
                yield _joined(waiting)
                waiting, n_waiting = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(pieces: list[Batch]) -> Batch:
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate([x for x, _ in pieces]), np.concatenate([y for _, y in pieces])
