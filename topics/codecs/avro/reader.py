"""Avro records to columns of instances, labels and feature values, and to commands.

A kernel checks all records and reads most of them; fastavro reads those with values that the kernel leaves.
Both have the columns of the JSON objects with the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from topics.codecs.avro.avro_schema import AvroSchema, name_of
from topics.codecs.avro.avro_values import documents, plain, values, without_nulls
from topics.codecs.avro.compiled.program import Program, compiled
from topics.codecs.avro.compiled.rows import Flags, ReadRows, read_rows
from topics.codecs.avro.layout import Layout, layout_of
from topics.codecs.batch import Batch
from topics.codecs.flaws import Flaw, Flaws, outcomes
from topics.codecs.json.compiled.joined_rows import joined_columns, record_order
from topics.codecs.json.compiled.shape import INSTANCES, LABELS, Members
from topics.codecs.json.compiled.shaped_rows import ShapedRows
from topics.codecs.json.documents import Document
from topics.codecs.json.feature_values import feature_values_of
from topics.codecs.json.reader import controls_of, instances_of, labels_of
from topics.codecs.lengths import name_flaw
from topics.codecs.limits import Limits
from topics.columns.records import Controls, FeatureValues, Instances, Labels, Malformed
from topics.columns.spans import Spans
from topics.errors import Reason, SchemaError

Rows = TypeVar("Rows", Instances, Labels)


class AvroReader:
    """Reads the records of one writer schema, which is compiled once for each topic."""

    def __init__(self, schema: AvroSchema) -> None:
        self._instances = _RowReader(schema, INSTANCES, instances_of, ShapedRows.instances, flat=True)
        self._labels = _RowReader(schema, LABELS, labels_of, ShapedRows.labels, flat=False)
        self._objects = _ObjectReader(schema)

    def read_instances(self, batch: Batch, limits: Limits) -> Instances:
        """Return the instances of the batch, whose values are those of the schema, without a frame."""
        parts = self._instances.parts(batch, limits)
        if len(parts) == 1:
            return parts[0]
        columns = joined_columns(parts, batch, record_order(parts))
        return Instances(**columns, blocks=np.empty((0, 3), dtype=np.int32))

    def simple_instances(self, values: Spans, limits: Limits) -> tuple[ShapedRows, Flags] | None:
        """Return n values as rows, and bool[n]: those that need no further check; None: no row is simple."""
        return self._instances.simple(values, limits)

    def read_labels(self, batch: Batch, limits: Limits) -> Labels:
        """Return the labels of the batch."""
        parts = self._labels.parts(batch, limits)
        if len(parts) == 1:
            return parts[0]
        order = record_order(parts)
        annotators = [text for part in parts for text in part.annotators]
        columns = joined_columns(parts, batch, order)
        return Labels(**columns, annotators=[annotators[row] for row in order.tolist()])

    def read_feature_values(self, batch: Batch, limits: Limits) -> FeatureValues:
        """Return the feature values of the batch."""
        return feature_values_of(*self._objects.read(batch, limits.json_max_values), limits)

    def read_controls(self, batch: Batch, limits: Limits) -> Controls:
        """Return the commands of the batch."""
        return controls_of(*self._objects.read(batch, limits.control_max_values))


class Programs:
    """The program of a schema for each bound of items; several threads may use it."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._bounded: dict[int, Program] = {}

    def bounded(self, max_items: int) -> Program:
        """Return the program for records with at most `max_items` items."""
        program = self._bounded.get(max_items)
        if program is None:
            program = self._bounded[max_items] = self._program.bounded(max_items)
        return program


class _ObjectReader:
    """Reads records as JSON objects, in which a field that is null is an absent member."""

    _NO_CELLS = Layout((), is_open=False, has_features=False, is_flat=False)

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._programs: Programs | None = None
        self._flaw: Flaw | None = None
        if name_of(schema.type_of(schema.root)) != "record":
            self._flaw = _no_record(schema)
            return
        try:
            self._programs = Programs(compiled(schema, self._NO_CELLS))
        except SchemaError as error:
            self._flaw = Flaw(Reason.BAD_VALUE, str(error))

    def read(self, batch: Batch, max_items: int) -> tuple[list[Document], Batch, list[Malformed]]:
        """Return the objects, the batch of their records, and the outcomes of the other records."""
        if self._programs is None:
            assert self._flaw is not None
            return [], _none_of(batch), _all_bad(batch, self._flaw)
        program = self._programs.bounded(max_items)
        checked = read_rows(program, self._NO_CELLS.shape, Spans.of(batch.values))
        good, _mask = batch.without(checked.flaws)
        objects = [without_nulls(plain(value)) for value in values(self._schema, good.values)]
        return objects, good, outcomes(batch.record, checked.flaws)


class _RowReader(Generic[Rows]):
    """Reads the records of a schema as rows of a topic."""

    def __init__(
        self,
        schema: AvroSchema,
        members: Members,
        by_library: Callable[[list[Document], Batch, list[Malformed], Flaws, Limits], Rows],
        by_kernel: Callable[[ShapedRows, Batch], Rows],
        *,
        flat: bool,
    ) -> None:
        self._schema = schema
        self._members = members
        self._by_library: Callable[[list[Document], Batch, list[Malformed], Flaws, Limits], Rows] = by_library
        self._by_kernel: Callable[[ShapedRows, Batch], Rows] = by_kernel
        self._programs: Programs | None = None
        self._layout: Layout | None = None
        self._flaw: Flaw | None = None
        try:
            self._layout = layout_of(schema, members, flat=flat)
            if self._layout is not None:
                self._programs = Programs(compiled(schema, self._layout))
        except SchemaError as error:
            self._flaw = Flaw(Reason.BAD_VALUE, str(error))
        if self._layout is None and self._flaw is None:
            self._flaw = _no_record(schema)

    def parts(self, batch: Batch, limits: Limits) -> list[Rows]:
        """Return the rows that the kernel has read, and those that fastavro has read, if there are any."""
        layout = self._layout
        if layout is None or self._programs is None:
            assert self._flaw is not None
            return [self._by_library([], _none_of(batch), _all_bad(batch, self._flaw), {}, limits)]
        program = self._programs.bounded(limits.json_max_values)
        checked = read_rows(program, layout.shape, Spans.of(batch.values))
        bad = outcomes(batch.record, checked.flaws)
        is_read = self._is_read(layout, checked, limits)
        if is_read.all():
            return [self._by_kernel(checked.rows, batch)]
        parts: list[Rows] = []
        if is_read.any():
            parts.append(self._by_kernel(checked.rows.where(is_read), batch.where(is_read)))
        is_rest = ~is_read
        is_rest[list(checked.flaws)] = False
        if is_rest.any() or bad or not parts:
            rest = batch.where(is_rest)
            flaws: Flaws = {}
            objects = documents(layout, self._members, values(self._schema, rest.values), flaws)
            parts.append(self._by_library(objects, rest, bad, flaws, limits))
        return parts

    def simple(self, values: Spans, limits: Limits) -> tuple[ShapedRows, Flags] | None:
        """Return the rows of values, and the rows of which the kernel has read all."""
        if self._layout is None or self._programs is None:
            return None
        checked = read_rows(self._programs.bounded(limits.json_max_values), self._layout.shape, values)
        return checked.rows, self._is_read(self._layout, checked, limits)

    def _is_read(self, layout: Layout, checked: ReadRows, limits: Limits) -> Flags:
        """Return the rows of which the kernel has read all, and no cell needs a further check."""
        names, roles = layout.shape.names, set(layout.shape.roles)
        is_closed = names is not None or not layout.has_features
        if layout.is_open or not is_closed or not self._members.required <= roles or _are_bad(names, limits):
            return np.zeros(len(checked.rows), dtype=np.bool_)
        if checked.is_read.all():
            return checked.rows.are_simple(self._members, limits)
        is_read = checked.is_read.copy()
        chosen = np.flatnonzero(is_read)
        simple = checked.rows.where(is_read).are_simple(self._members, limits)
        is_read[chosen[~simple]] = False
        return is_read


def _no_record(schema: AvroSchema) -> Flaw:
    kind = name_of(schema.type_of(schema.root))
    return Flaw(Reason.BAD_VALUE, f"the Avro schema of a record must be a record; it is of type {kind}")


def _are_bad(names: Sequence[str] | None, limits: Limits) -> bool:
    """Whether names of features are not allowed, so that the library's way names the flaw."""
    if names is None:
        return False
    return "" in names or name_flaw(names, limits.text_max_bytes, limits.features_max) is not None


def _none_of(batch: Batch) -> Batch:
    return batch.where(np.zeros(len(batch), dtype=np.bool_))


def _all_bad(batch: Batch, flaw: Flaw) -> list[Malformed]:
    return outcomes(batch.record, dict.fromkeys(range(len(batch)), flaw))
