"""Shaped rows: the values of records of one shape, and the columns made from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from topics.codecs.batch import Batch
from topics.codecs.json.compiled.rows import ESCAPED, FALSE, LENGTH_BITS, NULL, NUMBER, STRING, text_codes
from topics.codecs.json.compiled.shape import (
    ANNOTATOR,
    DECLINED,
    FEATURE,
    ID,
    LABEL,
    TEXTS,
    WEIGHT,
    Members,
    Shape,
)
from topics.codecs.limits import Limits
from topics.columns.records import MAX_WEIGHT, Features, Floats, Instances, Ints32, Ints64, Labels
from topics.columns.spans import Spans, Texts

_LENGTH = (1 << LENGTH_BITS) - 1

Flags = npt.NDArray[np.bool_]


class ShapedRows:
    """The values that `scan` has read from n records of a shape."""

    def __init__(self, shape: Shape, text: bytes, cells: Ints64, kinds: npt.NDArray[np.uint8]) -> None:
        """Take the shape, the text that the spans refer to, and the cells and their kinds: [n, values or
        more].
        """
        self._shape = shape
        self._text = text
        self._cells = cells
        self._kinds = kinds

    def __len__(self) -> int:
        return len(self._cells)

    def part(self, cut: slice) -> ShapedRows:
        """Return the rows of a slice."""
        return ShapedRows(self._shape, self._text, self._cells[cut], self._kinds[cut])

    def where(self, chosen: Flags) -> ShapedRows:
        """Return the rows that the mask selects."""
        return ShapedRows(self._shape, self._text, self._cells[chosen], self._kinds[chosen])

    def are_simple(self, members: Members, limits: Limits) -> Flags:
        """Return the rows in which each value may stand in its place without a further check."""
        longest = limits.text_max_bytes  # escapes only make a text shorter
        good = np.ones(len(self), dtype=np.bool_)
        for role in TEXTS:
            value = self._shape.value_of(role)
            if value >= 0:
                # A whole number becomes its digits; true and false are left to the codec.
                kind, length = self._kinds[:, value], self._cells[:, value] & _LENGTH
                most = min(longest, limits.class_max_bytes) if role == LABEL else longest
                is_text = (_are_strings(kind) | (kind == NUMBER)) & (length > 0) & (length <= most)
                good &= is_text if role in members.required else is_text | (kind == NULL)
        value = self._shape.value_of(WEIGHT)
        if value >= 0:
            kind, weight = self._kinds[:, value], self._numbers(value)
            good &= ((kind == NUMBER) & (weight > 0) & (weight <= MAX_WEIGHT)) | (kind == NULL)
        value = self._shape.value_of(DECLINED)
        if value >= 0:
            good &= (self._kinds[:, value] == FALSE) | (self._kinds[:, value] == NULL)
        features = self._features
        are_strings = _are_strings(self._kinds[:, features])
        if np.count_nonzero(are_strings):
            good &= ~(are_strings & ((self._cells[:, features] & _LENGTH) > longest)).any(axis=1)
        return good

    def instances(self, batch: Batch) -> Instances:
        """Return the rows, all of them simple, as instances; `batch` holds their records."""
        blocks = np.empty((0, 3), dtype=np.int32)
        return Instances(**self._common(batch), features=[self.matrix()], blocks=blocks)

    def labels(self, batch: Batch) -> Labels:
        """Return the rows, all of them simple, as labels; `batch` holds their records."""
        value = self._shape.value_of(ANNOTATOR)
        return Labels(
            **self._common(batch),
            annotators=self._cells_of(value) if value >= 0 else [None] * len(self),
            features=[self.matrix()] if FEATURE in self._shape.roles else [],
        )

    def _common(self, batch: Batch) -> dict[str, Any]:
        """Return the columns that instances and labels share."""
        label_values, label = self.classes()
        return {
            "record": batch.record,
            "row": np.zeros(len(self), dtype=np.int32),
            "keys": batch.keys,
            "key": batch.key,
            "ids": self.ids(batch),
            "label_values": label_values,
            "label": label,
            "weight": self.weights(),
            "malformed": [],
        }

    @property
    def _features(self) -> slice:
        first = self._shape.first_feature
        return slice(first, first + self._shape.n_features)

    def _numbers(self, value: int) -> Floats:
        return np.ascontiguousarray(self._cells[:, value]).view(np.float64)

    def weights(self) -> Floats:
        """Return float64[n]: the weight of each row."""
        value = self._shape.value_of(WEIGHT)
        if value < 0:
            return np.ones(len(self))
        return np.where(self._kinds[:, value] == NULL, 1.0, self._numbers(value))

    def classes(self) -> tuple[list[str], Ints32]:
        """Return the class names in order of appearance, and int32[n] into them (-1: no label)."""
        value = self._shape.value_of(LABEL)
        if value < 0:
            return [], np.full(len(self), -1, dtype=np.int32)
        return self._texts(value, self._kinds[:, value] != NULL)

    def ids(self, batch: Batch) -> Sequence[str]:
        """Return the id of each row; `batch` holds their records."""
        if self._shape.value_of(ID) < 0:
            return batch.default_ids()
        if (given := self.given_ids()) is not None:
            return given
        cells = self._cells_of(self._shape.value_of(ID))
        return [cell or default for cell, default in zip(cells, batch.default_ids(), strict=True)]

    @property
    def has_ids(self) -> bool:
        """Whether records of the shape have a member for the id."""
        return self._shape.value_of(ID) >= 0

    def given_ids(self) -> Texts | None:
        """Return the ids if every row has one, without escapes; else None."""
        value = self._shape.value_of(ID)
        if value < 0:
            return None
        kinds = self._kinds[:, value]
        if np.count_nonzero((kinds == ESCAPED) | (kinds == NULL)):
            return None
        cells = self._cells[:, value]
        return Texts(Spans(self._text, cells >> LENGTH_BITS, cells & _LENGTH))

    def matrix(self) -> Features:
        """Return the features of all rows."""
        columns = self._features
        values = self._cells[:, columns].copy().view(np.float64)
        are_strings = _are_strings(self._kinds[:, columns])
        strings: dict[int, list[str | None]] = {}
        if np.count_nonzero(are_strings):
            values[are_strings] = np.nan
            for column in np.flatnonzero(are_strings.any(axis=0)).tolist():
                strings[column] = self._cells_of(columns.start + column, are_strings[:, column])
        return Features(self._shape.names, np.arange(len(self), dtype=np.int64), values, strings)

    def _cells_of(self, value: int, has_text: Flags | None = None) -> list[str | None]:
        """Return the texts of a value, None for rows without text (has_text None: rows with null)."""
        names, codes = self._texts(value, self._kinds[:, value] != NULL if has_text is None else has_text)
        by_code: list[str | None] = [*names, None]  # the last name is for code -1
        return [by_code[code] for code in codes.tolist()]

    def _texts(self, value: int, has_text: Flags) -> tuple[list[str], Ints32]:
        """Return the distinct texts of a value in order of appearance, and int32[n], indices into them (-1:
        none).
        """
        n = len(self)
        spans = np.where(has_text, self._cells[:, value], -1)
        codes: Ints32 = np.empty(n, dtype=np.int32)
        distinct = np.empty(n, dtype=np.int64)
        table = np.full(1 << (2 * n).bit_length(), -1, dtype=np.int64)
        found = text_codes(np.frombuffer(self._text, dtype=np.uint8), spans, table, codes, distinct)
        starts = (distinct[:found] >> LENGTH_BITS).tolist()
        ends = ((distinct[:found] >> LENGTH_BITS) + (distinct[:found] & _LENGTH)).tolist()
        spelled = [self._text[a:b] for a, b in zip(starts, ends, strict=True)]
        if not np.count_nonzero(self._kinds[:, value] == ESCAPED):
            return [each.decode() for each in spelled], codes
        # One text may be spelled in several ways.
        number: dict[str, int] = {}
        texts = (orjson.loads(b'"%s"' % each) for each in spelled)
        numbers = [number.setdefault(text, len(number)) for text in texts]
        return list(number), np.array([*numbers, -1], dtype=np.int32)[codes]


def _are_strings(kinds: npt.NDArray[np.uint8]) -> Flags:
    found: Flags = (kinds == STRING) | (kinds == ESCAPED)
    return found
