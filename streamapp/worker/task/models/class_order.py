"""Class order: the classes of a schema in the order of their names."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topics.columns.records import Ints32


class ClassOrder(NamedTuple):
    """The K classes of a schema in the order of their names.

    Models meet their classes in different orders. Their answers list the classes in one order, so that
    answers are written together and look alike to readers.
    """

    classes: tuple[str, ...]
    columns: tuple[int, ...]  # of each of these classes in the schema
    codes: Ints32  # int32[K + 1]: number here of each class of the schema, and -1 (none) as -1
    moved: bool  # the schema has them in another order

    @classmethod
    def of(cls, classes: tuple[str, ...]) -> ClassOrder:
        """Return the order of the classes of a schema."""
        columns = sorted(range(len(classes)), key=classes.__getitem__)
        codes = np.full(len(classes) + 1, -1, dtype=np.int32)
        codes[columns] = np.arange(len(classes))
        named = tuple(classes[column] for column in columns)
        return cls(named, tuple(columns), codes, named != classes)
