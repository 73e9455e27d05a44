"""Protobuf records to columns: each message becomes the JSON object of the same names.

The library of Google reads the messages, one by one.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import orjson

from topics.codecs import json
from topics.codecs.batch import Batch
from topics.codecs.flaws import Flaw, Flaws, outcomes, quote
from topics.codecs.json.compiled.shape import INSTANCES
from topics.codecs.json.feature_values import read_feature_values
from topics.codecs.json.reader import read_controls
from topics.codecs.limits import Limits
from topics.codecs.protobuf.message_types import MessageTypes
from topics.codecs.protobuf.message_values import InfiniteError, document
from topics.columns.records import Controls, FeatureValues, Instances, Labels, Malformed
from topics.errors import Reason
from topics.registry.registered_schema import RegisteredSchema

MOST_INDEXES = 32
"""Messages inside each other, at most."""


class ProtobufReader:
    """Reads the records of one schema. A record begins with the indexes of its message."""

    def __init__(self, schema: RegisteredSchema) -> None:
        """Raise SchemaError, RegistryError as `MessageTypes` does."""
        self._types = MessageTypes(schema)

    def read_instances(self, batch: Batch, limits: Limits) -> Instances:
        """Return the instances of the batch; without a field `features`, other fields are the features."""
        texts, bad = self._texts(batch, INSTANCES.roles)
        instances = json.read_instances(texts, limits)
        return replace(instances, malformed=_together(bad, instances.malformed))

    def read_labels(self, batch: Batch, limits: Limits) -> Labels:
        """Return the labels of the batch."""
        texts, bad = self._texts(batch, None)
        labels = json.read_labels(texts, limits)
        return replace(labels, malformed=_together(bad, labels.malformed))

    def read_feature_values(self, batch: Batch, limits: Limits) -> FeatureValues:
        """Return the feature values of the batch."""
        texts, bad = self._texts(batch, None)
        values = read_feature_values(texts, limits)
        return replace(values, malformed=_together(bad, values.malformed))

    def read_controls(self, batch: Batch, limits: Limits) -> Controls:
        """Return the commands of the batch."""
        texts, bad = self._texts(batch, None)
        controls = read_controls(texts, limits)
        return Controls(controls.items, _together(bad, controls.malformed))

    def _texts(self, batch: Batch, members: Container[str] | None) -> tuple[Batch, list[Malformed]]:
        """Return the good records as JSON, and the outcomes of the others."""
        flaws: Flaws = {}
        texts = []
        for row, value in enumerate(batch.values):
            text = self._text(value, members)
            if isinstance(text, Flaw):
                flaws[row] = text
            else:
                texts.append(text)
        good, _mask = batch.without(flaws)
        return replace(good, values=texts), outcomes(batch.record, flaws)

    def _text(self, value: bytes, members: Container[str] | None) -> bytes | Flaw:
        from google.protobuf.message import DecodeError

        indexes, start = _indexes(value)
        if not indexes:
            return Flaw(Reason.BAD_VALUE, "a value of Protobuf must begin with the indexes of its message")
        try:
            message_class = self._types.message_class(indexes)
        except LookupError:
            return Flaw(Reason.BAD_VALUE, f"the schema has no message {'.'.join(map(str, indexes))}")
        name = message_class.DESCRIPTOR.full_name
        try:
            return orjson.dumps(document(message_class.FromString(value[start:]), members))
        except DecodeError:
            return Flaw(Reason.BAD_VALUE, f"the value must be a message {quote(name)} in Protobuf's encoding")
        except UnicodeDecodeError:  # proto2 does not check strings
            return Flaw(Reason.BAD_VALUE, f"the strings of a message {quote(name)} must be UTF-8")
        except InfiniteError as error:
            return Flaw(Reason.NOT_FINITE, f"field {quote(str(error))} is infinite; NaN stands for missing")
        except orjson.JSONEncodeError as error:
            return Flaw(Reason.BAD_VALUE, f"the message {quote(name)} has a value that JSON lacks: {error}")


def _together(bad: list[Malformed], others: list[Malformed]) -> list[Malformed]:
    return sorted([*bad, *others], key=lambda outcome: outcome.record)


def _indexes(value: bytes) -> tuple[list[int], int]:
    """Return the indexes of the message at the beginning of a value, and where they end; none: no indexes.

    They are their number and themselves as zigzag varints; a single 0 stands for the first message.
    """
    try:
        count, at = _varint(value, 0)
        if count == 0:
            return [0], at
        if not 0 < count <= MOST_INDEXES:
            return [], 0
        indexes = []
        for _ in range(count):
            index, at = _varint(value, at)
            indexes.append(index)
    except IndexError:
        return [], 0
    return indexes, at


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag varint and its end; IndexError if it is cut off or longer than 5 bytes."""
    number = shift = 0
    while True:
        if shift > 28:
            raise IndexError
        byte = value[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
