"""Shapes: the text between the values of a record."""

import pytest

from topics.codecs import Limits
from topics.codecs.json.compiled.shape import (
    ANNOTATOR,
    DECLINED,
    FEATURE,
    ID,
    IGNORED,
    INSTANCES,
    LABEL,
    LABELS,
    WEIGHT,
    shape_of,
)

LIMITS = Limits()


def test_a_record_by_name() -> None:
    record = b'{"id": "x,\\"1\\"", "at":{ "a" :1.5,"\\u00e9":null } ,"weight":2, "z":true,"label":"no"}\n'
    record = record.replace(b'"at"', b'"features"')
    shape = shape_of(record, INSTANCES, LIMITS)
    assert shape is not None
    assert shape.roles == (ID, FEATURE, FEATURE, WEIGHT, IGNORED, LABEL)
    assert shape.names == ("a", "é")
    assert shape.first_feature == 1
    values = (b'"x,\\"1\\""', b"1.5", b"null", b"2", b"true", b'"no"')
    pieces = [piece for pair in zip(shape.texts, (*values, b""), strict=True) for piece in pair]
    assert b"".join(pieces) == record


def test_a_record_by_position() -> None:
    shape = shape_of(b'{"features":[1,2,"red"],"label":0}', INSTANCES, LIMITS)
    assert shape is not None
    assert (shape.names, shape.n_features, shape.texts[1]) == (None, 3, b",")


@pytest.mark.parametrize(
    "record",
    [
        b'{"features":{"a":1},"more":{"b":2}}',  # nested
        b'{"features":{"a":1},"more":[]}',
        b'{"features":{"a":[1]}}',
        b'{"features":{"a":1},"label":1,"label":2}',  # the last one counts
        b'{"features":{"a":1,"\\u0061":2}}',
        b'{"features":{"":1}}',
        b'{"features":{}}',
        b'{"id":1}',
        b"[1]",
        b'{"features":1}',
        b'{"features":{"%s":1}}' % (b"n" * 1025),  # too long for a name
        b'{"features":[%s]}' % b",".join([b"1"] * 5000),
    ],
)
def test_records_without_a_shape(record: bytes) -> None:
    assert shape_of(record, INSTANCES, LIMITS) is None


def test_a_label_needs_no_features() -> None:
    shape = shape_of(b'{"id":"x","annotator":"a","declined":false,"label":"no"}', LABELS, LIMITS)
    assert shape is not None
    assert shape.roles == (ID, ANNOTATOR, DECLINED, LABEL)
    assert shape.n_features == 0
    assert shape_of(b'{"id":"x","declined":true}', LABELS, LIMITS) is None
