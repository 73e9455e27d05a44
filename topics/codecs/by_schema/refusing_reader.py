"""Refusing reader: takes the place of a reader if a schema is not valid."""

from __future__ import annotations

import numpy as np

from topics.codecs import json
from topics.codecs.batch import Batch
from topics.codecs.flaws import Flaw, malformed
from topics.codecs.json.feature_values import read_feature_values
from topics.codecs.json.reader import read_controls
from topics.codecs.limits import Limits
from topics.columns.records import Controls, FeatureValues, Instances, Labels, Malformed
from topics.errors import Reason


class RefusingReader:
    """Refuses every record: its schema cannot be used."""

    def __init__(self, detail: str) -> None:
        self._flaw = Flaw(Reason.BAD_VALUE, detail)

    def read_instances(self, batch: Batch, limits: Limits) -> Instances:
        """Return no instances, and all records as malformed."""
        instances = json.read_instances(_none_of(batch), limits)
        instances.malformed.extend(self._outcomes(batch))
        return instances

    def read_labels(self, batch: Batch, limits: Limits) -> Labels:
        """Return no labels, and all records as malformed."""
        labels = json.read_labels(_none_of(batch), limits)
        labels.malformed.extend(self._outcomes(batch))
        return labels

    def read_feature_values(self, batch: Batch, limits: Limits) -> FeatureValues:
        """Return no feature values, and all records as malformed."""
        values = read_feature_values(_none_of(batch), limits)
        values.malformed.extend(self._outcomes(batch))
        return values

    def read_controls(self, batch: Batch, limits: Limits) -> Controls:
        """Return no commands, and all records as malformed."""
        controls = read_controls(_none_of(batch), limits)
        controls.malformed.extend(self._outcomes(batch))
        return controls

    def _outcomes(self, batch: Batch) -> list[Malformed]:
        return [malformed(record, self._flaw) for record in batch.record.tolist()]


def _none_of(batch: Batch) -> Batch:
    return batch.where(np.zeros(len(batch), dtype=np.bool_))
