"""Decoding with shapes: a kernel reads simple records, the codecs read the rest; the outcome is the same.

A JSON record is simple if the text between its values is that of a known shape, and its values are numbers,
short strings, true, false or null, each where it is allowed. A packed instance is simple if it has no flaw.
The codecs of `topics` read all other records, and all bad records. The set of known shapes changes only the
time it takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import numpy as np

from topics.codecs.batch import Batch
from topics.codecs.codec import input_codec
from topics.codecs.compiled.keys import KeyTexts, code_headers
from topics.codecs.compiled.small_runs import JoinedRuns, join_runs, small_runs
from topics.codecs.content_types import uniform_wire
from topics.codecs.json.compiled.joined_rows import joined_columns, record_order
from topics.codecs.json.compiled.shape import INSTANCES, LABELS, Members
from topics.codecs.json.compiled.shaped_rows import ShapedRows
from topics.codecs.json.compiled.shapes import Shapes
from topics.codecs.limits import Limits
from topics.codecs.merge import merge_instances, merge_labels
from topics.codecs.packed.compiled.packed_forms import Flags, read_instances, read_labels
from topics.codecs.screening import Batches, Form, may_name_schema, screen
from topics.columns.records import Instances, Labels, RawRecords

FEWEST: Final = 8
"""Records of a run from which on calling the kernel is worth its cost."""


Decoded = TypeVar("Decoded", Instances, Labels)


class _Decoder(ABC, Generic[Decoded]):
    """Decodes runs of a topic, and remembers the shapes of its JSON."""

    def __init__(self, members: Members) -> None:
        self._shapes = Shapes(members)
        self._key_texts = KeyTexts()

    def decode(self, runs: Sequence[RawRecords], limits: Limits) -> list[Decoded]:
        """Return the result of decoding each of several runs, of any partitions."""
        return [self(raw, limits) for raw in runs]

    @abstractmethod
    def __call__(self, raw: RawRecords, limits: Limits) -> Decoded:
        """Return the result of decoding a run."""

    @abstractmethod
    def _by_codec(self, form: Form, batch: Batch, limits: Limits) -> Decoded:
        """Return a batch as its codec decodes it."""

    @abstractmethod
    def _by_shape(self, shaped: ShapedRows, batch: Batch) -> Decoded:
        """Return simple rows as columns; `batch` holds their records."""

    @abstractmethod
    def _packed(self, batch: Batch, limits: Limits) -> tuple[list[Decoded], Flags]:
        """Return the packed records that a kernel can decode, and bool[n]: the records that it leaves to the
        codec.
        """

    @abstractmethod
    def _together(self, parts: list[Decoded], batch: Batch) -> Decoded:
        """Return the parts in the order of their records, as if one reader had decoded them."""

    def _parts(self, batches: Batches, limits: Limits) -> list[Decoded]:
        return [
            self._by_codec(form, batch, limits)
            if len(batch) < FEWEST
            else self._read(batch, limits)
            if form == "json"
            else self._of_other_formats(form, batch, limits)
            for form, batch in batches.items()
        ]

    def _of_other_formats(self, form: Form, batch: Batch, limits: Limits) -> Decoded:
        """Return a batch that is not JSON, as the codec would decode it."""
        if form != "packed":
            return self._by_codec(form, batch, limits)
        parts, is_rest = self._packed(batch, limits)
        if is_rest.any():
            parts.append(self._by_codec(form, batch.where(is_rest) if parts else batch, limits))
        return parts[0] if len(parts) == 1 else self._together(parts, batch)

    def _read(self, batch: Batch, limits: Limits) -> Decoded:
        """Return a batch as the codec would decode it."""
        scanned = self._shapes.scan(batch.values, limits)
        if len(scanned) == 1 and len(scanned[0][0]) == len(batch):
            return self._by_shape(scanned[0][1], batch)
        is_rest = np.ones(len(batch), dtype=np.bool_)
        parts: list[Decoded] = []
        for rows, shaped in scanned:
            is_rest[rows] = False
            is_simple = np.zeros(len(batch), dtype=np.bool_)
            is_simple[rows] = True
            parts.append(self._by_shape(shaped, batch.where(is_simple)))
        if is_rest.any():
            rest = batch.where(is_rest) if parts else batch
            read = self._by_codec("json", rest, limits)
            parts.append(read)
            if len(read):  # learn from the first good record that the codec had to read
                first = int(np.searchsorted(rest.record, read.record[0]))
                self._shapes.learn(rest.values[first], limits)
        return parts[0] if len(parts) == 1 else self._together(parts, batch)


class InstanceDecoder(_Decoder[Instances]):
    """Decodes runs of instances with the result of `topics.codecs.decode_instances`, but faster."""

    def __init__(self) -> None:
        super().__init__(INSTANCES)

    def __call__(self, raw: RawRecords, limits: Limits) -> Instances:
        """Return the instances of a run."""
        code_headers(raw.headers)
        batches, malformed = screen(raw, limits, read_keys=self._key_texts)
        return merge_instances(self._parts(batches, limits), malformed)

    def decode(self, runs: Sequence[RawRecords], limits: Limits) -> list[Instances]:
        """Return the instances of each run; simple JSON of small runs is read in one go."""
        if len(runs) == 1 or any(map(may_name_schema, runs)):
            return [self(raw, limits) for raw in runs]
        decoded: list[Instances] = []
        unread = b""
        for raw, batch in zip(runs, small_runs(runs, limits, self._shapes, self._key_texts), strict=True):
            decoded.append(self(raw, limits) if batch is None else batch)
            if batch is None and not unread:
                unread = _first_of_few(raw, decoded[-1])
        if unread and sum(map(len, runs)) >= FEWEST:  # the next runs like these are read in one go
            self._shapes.learn(unread, limits)
        return decoded

    def join(self, runs: Sequence[RawRecords], limits: Limits) -> tuple[JoinedRuns, list[int]] | None:
        """Return plain JSON of one shape, or Avro of one schema, over several runs; see `join_runs`."""
        return join_runs(runs, limits, self._shapes, self._key_texts)

    def _by_codec(self, form: Form, batch: Batch, limits: Limits) -> Instances:
        return input_codec(form).read_instances(batch, limits)

    def _packed(self, batch: Batch, limits: Limits) -> tuple[list[Instances], Flags]:
        return read_instances(batch, limits)

    def _by_shape(self, shaped: ShapedRows, batch: Batch) -> Instances:
        return shaped.instances(batch)

    def _together(self, parts: list[Instances], batch: Batch) -> Instances:
        order = record_order(parts)
        return Instances(**joined_columns(parts, batch, order), blocks=np.empty((0, 3), dtype=np.int32))


def _first_of_few(raw: RawRecords, batch: Instances) -> bytes:
    """Return the first good record of a run of JSON that is too small for the kernel; empty: none is good."""
    if len(raw) >= FEWEST or not len(batch) or uniform_wire(raw.values, raw.headers) != "json":
        return b""
    return raw.values[int(batch.record[0])] or b""


class LabelDecoder(_Decoder[Labels]):
    """Decodes runs of labels with the result of `topics.codecs.decode_labels`, but faster."""

    def __init__(self) -> None:
        super().__init__(LABELS)

    def __call__(self, raw: RawRecords, limits: Limits) -> Labels:
        """Return the labels of a run."""
        code_headers(raw.headers)
        batches, malformed = screen(raw, limits, read_keys=self._key_texts)
        return merge_labels(self._parts(batches, limits), malformed)

    def _by_codec(self, form: Form, batch: Batch, limits: Limits) -> Labels:
        return input_codec(form).read_labels(batch, limits)

    def _packed(self, batch: Batch, limits: Limits) -> tuple[list[Labels], Flags]:
        return read_labels(batch, limits)

    def _by_shape(self, shaped: ShapedRows, batch: Batch) -> Labels:
        return shaped.labels(batch)

    def _together(self, parts: list[Labels], batch: Batch) -> Labels:
        order = record_order(parts)
        annotators = [text for part in parts for text in part.annotators]
        return Labels(
            **joined_columns(parts, batch, order), annotators=[annotators[row] for row in order.tolist()]
        )
