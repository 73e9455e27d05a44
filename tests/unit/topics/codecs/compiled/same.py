"""Instances and labels that are the same, to the bit."""

import numpy as np

from topics.columns.records import Instances, Labels


def assert_same(actual: Instances | Labels, expected: Instances | Labels) -> None:
    assert type(actual) is type(expected)
    blocks = ("blocks",) if isinstance(expected, Instances) else ()
    for name in ("record", "row", "key", "label", "weight", *blocks):
        ours, theirs = getattr(actual, name), getattr(expected, name)
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes(), (name, ours, theirs)
    for name in ("keys", "label_values", "malformed"):
        assert getattr(actual, name) == getattr(expected, name)
    assert list(actual.ids) == list(expected.ids)
    if isinstance(actual, Labels) and isinstance(expected, Labels):
        assert actual.annotators == expected.annotators
    assert [features.names for features in actual.features] == [
        features.names for features in expected.features
    ]
    for ours, theirs in zip(actual.features, expected.features, strict=True):
        assert np.array_equal(ours.rows, theirs.rows)
        assert ours.values.shape == theirs.values.shape
        assert ours.values.tobytes() == theirs.values.tobytes()
        assert ours.strings == theirs.strings
