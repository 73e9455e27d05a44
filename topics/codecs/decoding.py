"""Decoding of inputs: instances, labels, controls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topics.codecs.batch import Batch
from topics.codecs.codec import CODECS
from topics.codecs.json.feature_values import read_feature_values
from topics.codecs.json.reader import read_controls
from topics.codecs.limits import Limits
from topics.codecs.merge import merge_instances, merge_labels
from topics.codecs.screening import screen
from topics.columns.records import Controls, FeatureValues, Instances, Labels, RawRecords

DEFAULT_LIMITS = Limits()


def decode_instances(raw: RawRecords, limits: Limits = DEFAULT_LIMITS) -> Instances:
    """Return the instances of a run."""
    batches, malformed = screen(raw, limits)
    parts = [CODECS[form].read_instances(batch, limits) for form, batch in batches.items()]
    return merge_instances(parts, malformed)


def decode_labels(raw: RawRecords, limits: Limits = DEFAULT_LIMITS) -> Labels:
    """Return the labels of a run."""
    batches, malformed = screen(raw, limits)
    parts = [CODECS[form].read_labels(batch, limits) for form, batch in batches.items()]
    return merge_labels(parts, malformed)


def decode_feature_values(raw: RawRecords, limits: Limits = DEFAULT_LIMITS) -> FeatureValues:
    """Return the feature values of a run; they are JSON."""
    batches, malformed = screen(raw, limits, ("json",))
    if "json" not in batches:
        batches = {
            "json": Batch(raw.partition, np.zeros(0, dtype=np.int32), [], [], [], np.zeros(0, np.int32))
        }
    found = read_feature_values(batches["json"], limits)
    bad = sorted([*malformed, *found.malformed], key=lambda each: each.record)
    return replace(found, malformed=bad)


def decode_controls(raw: RawRecords, limits: Limits = DEFAULT_LIMITS) -> Controls:
    """Return the commands of a run; they are JSON."""
    batches, malformed = screen(raw, limits, ("json",), limits.control_max_values)
    if "json" not in batches:
        return Controls([], malformed)
    controls = read_controls(batches["json"], limits)
    bad = sorted([*malformed, *controls.malformed], key=lambda each: each.record)
    return Controls(controls.items, bad)
