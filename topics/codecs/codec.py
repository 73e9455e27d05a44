"""Codec interface: the packages `json`, `packed` and `arrow` each implement it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from topics.codecs import arrow, json, packed
from topics.codecs.batch import Batch
from topics.codecs.by_schema.schema_readers import reader_of
from topics.codecs.limits import Limits
from topics.codecs.prediction_row import PredictionRow
from topics.codecs.screening import Form
from topics.columns.records import Features, Floats, Format, Instances, Labels, Predictions
from topics.errors import CodecError
from topics.registry.registered_schema import RegisteredSchema


class InputCodec(Protocol):
    """Reads the values of instances and labels, batch-wise."""

    def read_instances(self, batch: Batch, limits: Limits) -> Instances:
        """Return the instances of the batch; bad records are in its `malformed`."""

    def read_labels(self, batch: Batch, limits: Limits) -> Labels:
        """Return the labels of the batch; bad records are in its `malformed`."""


class Codec(InputCodec, Protocol):
    """One wire format, batch-wise in both directions."""

    def read_predictions(self, value: bytes) -> list[PredictionRow]:
        """Return the rows of one record; raise LookupError, TypeError or ValueError if it holds no
        predictions.
        """

    def write_instances(
        self,
        features: Features,
        ids: Sequence[str] | None,
        labels: Sequence[str | None] | None,
        weights: Floats | None,
    ) -> list[bytes]:
        """Return a record for each row, or one block."""

    def write_labels(
        self,
        ids: Sequence[str],
        labels: Sequence[str | None],
        weights: Floats | None,
        annotators: Sequence[str | None] | None,
        features: Features | None,
    ) -> list[bytes]:
        """Return a record for each row, or one block."""

    def write_predictions(self, predictions: Predictions) -> list[bytes]:
        """Return a record for each row, or one block."""


CODECS: dict[Format, Codec] = {"json": json, "packed": packed, "arrow": arrow}


def input_codec(form: Form) -> InputCodec:
    """Return the codec of a format, or the reader of a schema."""
    return reader_of(form) if isinstance(form, RegisteredSchema) else CODECS[form]


def codec(form: Format) -> Codec:
    """Return the codec of a format."""
    if form not in CODECS:
        message = f"format={form!r} must be one of {', '.join(CODECS)}"
        raise CodecError(message)
    return CODECS[form]
