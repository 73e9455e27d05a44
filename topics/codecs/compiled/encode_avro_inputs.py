"""Encoding of instances and labels in Avro, for replays: a kernel writes them from columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topics.codecs.avro.compiled.row_writing import (
    CELL,
    MAYBE_NUMBER,
    MAYBE_TEXT,
    TEXT,
    RowProgram,
    Rows,
    placed,
    whole,
)
from topics.codecs.compiled.text_columns import text_spans
from topics.codecs.frames.wire_format import framed
from topics.columns.records import Features
from topics.columns.spans import Spans


class AvroInputs:
    """Writes values of the schemas in topics/codecs/avro/input_schemas.py."""

    def __init__(
        self, instance_id: int, label_id: int, nominal: Sequence[int], width: int, *, by_name: bool
    ) -> None:
        """`instance_id` and `label_id` are the ids of the schemas; `nominal` are the columns of strings."""
        self._instance_id = instance_id
        self._nominal = tuple(sorted(nominal))
        self._width = width
        self._by_name = by_name
        rows = Rows()
        rows.constant(framed(label_id, b""))
        rows.cell(TEXT)
        rows.cell(TEXT)
        self._label = rows.program()
        self._programs: dict[tuple[bool, bool], RowProgram] = {}

    def instances(
        self,
        features: Features,
        ids: Sequence[str] | None,
        labels: Sequence[str | None] | None,
        *,
        has_labels: bool,
    ) -> list[bytes]:
        """Return n values with their frames; `has_labels`: the schema has a field for labels."""
        n = len(features)
        texts = [_maybe(features.strings.get(column), n) for column in self._nominal]
        if ids is not None:
            texts.append(text_spans(ids))
        if has_labels:
            texts.append(_maybe(labels, n))
        words_of_texts, buffer, size = placed(texts)
        program = self._program(has_ids=ids is not None, has_labels=has_labels)
        words = np.empty((n, program.columns), dtype=np.int64)
        numbers = np.ascontiguousarray(features.values).view(np.int64)
        at = 0
        if ids is not None:
            words[:, 0] = words_of_texts[len(self._nominal)]
            at = 1
        for column in range(self._width):
            is_nominal = column in self._nominal
            if is_nominal:
                words[:, at] = words_of_texts[self._nominal.index(column)]
                at += 1
            if not is_nominal or not self._by_name:
                words[:, at] = numbers[:, column]
                at += 1
        if has_labels:
            words[:, at] = words_of_texts[-1]
        return [value or b"" for value in program.write(words, buffer, size)]

    def labels(self, ids: Sequence[str], labels: Sequence[str]) -> list[bytes]:
        """Return n values with their frames."""
        columns, buffer, size = placed([text_spans(ids), text_spans(labels)])
        return [value or b"" for value in self._label.write(np.column_stack(columns), buffer, size)]

    def _program(self, *, has_ids: bool, has_labels: bool) -> RowProgram:
        program = self._programs.get((has_ids, has_labels))
        if program is None:
            rows = Rows()
            rows.constant(framed(self._instance_id, b""))
            if has_ids:
                rows.cell(TEXT)
            if not self._by_name:
                rows.constant(whole(self._width))
            for column in range(self._width):
                is_nominal = column in self._nominal
                rows.cell(MAYBE_NUMBER if not is_nominal else MAYBE_TEXT if self._by_name else CELL)
            if not self._by_name:
                rows.constant(whole(0))
            if has_labels:
                rows.cell(MAYBE_TEXT)
            program = self._programs[has_ids, has_labels] = rows.program()
        return program


def _maybe(cells: Sequence[str | None] | None, n: int) -> Spans:
    """Return n texts, null where a row has none."""
    return Spans.of(
        [None] * n if cells is None else [None if cell is None else cell.encode() for cell in cells]
    )
