"""Instances and labels that are the same, to the bit."""

import numpy as np

from topics.columns.records import Instances, Labels


def assert_same(found: Instances | Labels, wanted: Instances | Labels) -> None:
    assert type(found) is type(wanted)
    blocks = ("blocks",) if isinstance(wanted, Instances) else ()
    for name in ("record", "row", "key", "label", "weight", *blocks):
        ours, theirs = getattr(found, name), getattr(wanted, name)
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes(), (name, ours, theirs)
    for name in ("keys", "label_values", "malformed"):
        assert getattr(found, name) == getattr(wanted, name)
    assert list(found.ids) == list(wanted.ids)
    if isinstance(found, Labels) and isinstance(wanted, Labels):
        assert found.annotators == wanted.annotators
    assert [each.names for each in found.features] == [each.names for each in wanted.features]
    for ours, theirs in zip(found.features, wanted.features, strict=True):
        assert np.array_equal(ours.rows, theirs.rows)
        assert ours.values.shape == theirs.values.shape
        assert ours.values.tobytes() == theirs.values.tobytes()
        assert ours.strings == theirs.strings
