"""Single instances: the instances of a run, each as the run of its record alone."""

from __future__ import annotations

import numpy as np

from topics.columns.records import Features, Instances, Ints64


class SingleInstances:
    """The instances of a run that was decoded as a whole."""

    def __init__(self, batch: Instances) -> None:
        """batch: n rows."""
        self._batch = batch
        n = len(batch)
        self._group: Ints64 = np.zeros(n, dtype=np.int64)
        self._place: Ints64 = np.zeros(n, dtype=np.int64)
        for number, group in enumerate(batch.features):
            self._group[group.rows] = number
            self._place[group.rows] = np.arange(len(group))

    def of(self, record: int) -> Instances | None:
        """Return the decoded form of one record alone; None: it is a block or malformed, decode it."""
        batch = self._batch
        row = int(np.searchsorted(batch.record, record))
        if row == len(batch) or batch.record[row] != record or self._is_block(record):
            return None
        label = int(batch.label[row])
        return Instances(
            record=np.zeros(1, dtype=np.int32),
            row=np.zeros(1, dtype=np.int32),
            keys=[batch.keys[batch.key[row]]],
            key=np.zeros(1, dtype=np.int32),
            ids=[batch.ids[row]],
            label_values=[batch.label_values[label]] if label >= 0 else [],
            label=np.full(1, min(label, 0), dtype=np.int32),
            weight=batch.weight[row : row + 1],
            features=[self._features(row)],
            blocks=np.empty((0, 3), dtype=np.int32),
            malformed=[],
        )

    def _is_block(self, record: int) -> bool:
        blocks = self._batch.blocks
        return bool(len(blocks)) and record in blocks[:, 0]

    def _features(self, row: int) -> Features:
        """Return the features of a row; a text column remains text only if the row has a text in it."""
        group, place = self._batch.features[self._group[row]], int(self._place[row])
        strings: dict[int, list[str | None]] = {
            column: [cells[place]] for column, cells in group.strings.items() if cells[place] is not None
        }
        values = group.values[place : place + 1]
        return Features(group.names, np.zeros(1, dtype=np.int64), values, strings)
