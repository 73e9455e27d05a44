"""Decoding of inputs: instances, labels, feature values, controls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topics.codecs.batch import Batch
from topics.codecs.by_schema.schema_readers import reader_of
from topics.codecs.codec import input_codec
from topics.codecs.json.feature_values import read_feature_values
from topics.codecs.json.reader import read_controls
from topics.codecs.limits import Limits
from topics.codecs.merge import merge_feature_values, merge_instances, merge_labels
from topics.codecs.screening import screen
from topics.columns.records import Controls, FeatureValues, Instances, Labels, RawRecords
from topics.registry.registered_schema import RegisteredSchema

DEFAULT_LIMITS = Limits()


def decode_instances(raw: RawRecords, limits: Limits = DEFAULT_LIMITS) -> Instances:
    """Return the instances of a run."""
    batches, malformed = screen(raw, limits)
    parts = [input_codec(form).read_instances(batch, limits) for form, batch in batches.items()]
    return merge_instances(parts, malformed)


def decode_labels(raw: RawRecords, limits: Limits = DEFAULT_LIMITS) -> Labels:
    """Return the labels of a run."""
    batches, malformed = screen(raw, limits)
    parts = [input_codec(form).read_labels(batch, limits) for form, batch in batches.items()]
    return merge_labels(parts, malformed)


def decode_feature_values(raw: RawRecords, limits: Limits = DEFAULT_LIMITS) -> FeatureValues:
    """Return the feature values of a run; they are JSON, or by a schema."""
    batches, malformed = screen(raw, limits, ("json",))
    parts = [
        reader_of(form).read_feature_values(batch, limits)
        if isinstance(form, RegisteredSchema)
        else read_feature_values(batch, limits)
        for form, batch in batches.items()
    ]
    if not parts:
        none = Batch(raw.partition, np.zeros(0, dtype=np.int32), [], [], [], np.zeros(0, np.int32))
        parts = [read_feature_values(none, limits)]
    values = parts[0] if len(parts) == 1 else merge_feature_values(parts)
    bad = sorted([*malformed, *values.malformed], key=lambda outcome: outcome.record)
    return replace(values, malformed=bad)


def decode_controls(raw: RawRecords, limits: Limits = DEFAULT_LIMITS) -> Controls:
    """Return the commands of a run; they are JSON, or by a schema."""
    batches, malformed = screen(raw, limits, ("json",), limits.control_max_values)
    parts = [
        reader_of(form).read_controls(batch, limits)
        if isinstance(form, RegisteredSchema)
        else read_controls(batch, limits)
        for form, batch in batches.items()
    ]
    items = sorted((item for part in parts for item in part.items), key=lambda item: item.record)
    bad = [*malformed, *(outcome for part in parts for outcome in part.malformed)]
    return Controls(items, sorted(bad, key=lambda outcome: outcome.record))
