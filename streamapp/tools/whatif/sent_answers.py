"""Sent answers: whether the log reproduces the predictions that are on their topic.

Both come roughly in the order of the instances: a run writes its answers in groups. So sent answers are read
ahead, and those long before the last answer that was found are dropped. Memory is bounded, also if the topic
has lost its beginning, or repeats answers after a failure under at-least-once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from streamapp.worker.task.effects.effects import PredictionGroup
from topics.codecs import decode_predictions, encode_predictions
from topics.codecs.content_types import wire_of_value
from topics.codecs.json.probabilities import as_written
from topics.columns.records import Format, Predictions, RawRecords

AHEAD: Final = 100_000
"""Sent answers that are kept at most while the answer to compare is looked for."""

DISORDER: Final = 20_000
"""Sent answers by which the order may differ: more than a run has."""

Content = tuple[str | None, str | None, Mapping[str, float], int]  # id, class, probabilities, version


class Sent(NamedTuple):
    """An answer on the topic."""

    form: Format
    content: Content


class SentAnswers:
    """The answers of one model on the topic of predictions."""

    def __init__(self, key: bytes, since: Callable[[int], Iterator[RawRecords]]) -> None:
        """`since`: yields the predictions of the partition from a timestamp (ms) on."""
        self.equal = self.different = self.not_found = 0
        self._key = key
        self._since = since
        self._log: Iterator[RawRecords] | None = None
        self._order: deque[tuple[int, str | None]] = deque()
        self._by_id: dict[str | None, dict[int, Sent]] = {}
        self._read = 0
        self._last_found = -1
        self._is_over = False

    def compare(self, groups: Iterable[PredictionGroup], raw: RawRecords) -> None:
        """Compare the model's answers in a run."""
        for group in groups:
            records = group.record.tolist()
            keys = [raw.keys[record] if group.key is None else group.key for record in records]
            is_ours = np.array([key == self._key for key in keys], dtype=np.bool_)
            rows = np.flatnonzero(is_ours & (group.predictions.version >= 0))
            if not len(rows):
                continue
            if self._log is None:
                self._log = self._since(raw.timestamps[records[int(rows[0])]])
            found = chosen(group.predictions, rows)
            in_forms: dict[Format, list[Content]] = {}
            for row in range(len(found)):
                self._count(row, found, in_forms)

    def _count(self, row: int, found: Predictions, in_forms: dict[Format, list[Content]]) -> None:
        """Compare one row; `in_forms`: the rows as each format of answers holds them."""
        name = found.ids[row]
        first: int | None = None
        seen = -1
        while True:
            for number, sent in self._by_id.get(name, {}).items():
                if number <= seen:
                    continue
                first, seen = number if first is None else first, number
                if sent.form not in in_forms:
                    in_forms[sent.form] = contents(encode_predictions(found, sent.form))
                if in_forms[sent.form][row] == sent.content:
                    self.equal += 1
                    self._take(name, number)
                    return
            if not self._read_more():
                break
        if first is None:
            self.not_found += 1
        else:
            self.different += 1
            self._take(name, first)

    def _take(self, name: str | None, number: int) -> None:
        """Count an answer as found."""
        self._last_found = max(self._last_found, number)
        self._remove(name, number)

    def _remove(self, name: str | None, number: int) -> None:
        same_id = self._by_id.get(name, {})
        if same_id.pop(number, None) is not None and not same_id:
            del self._by_id[name]

    def _read_more(self) -> bool:
        """Read some answers ahead; return whether there may be more."""
        while len(self._order) >= AHEAD and self._order[0][0] < self._last_found - DISORDER:
            number, name = self._order.popleft()
            self._remove(name, number)
        if self._is_over or len(self._order) >= AHEAD:
            return False
        assert self._log is not None
        raw = next(self._log, None)
        if raw is None:
            self._is_over = True
            return False
        for key, value in zip(raw.keys, raw.values, strict=True):
            if key != self._key or not value:
                continue
            wire = wire_of_value(value)
            form: Format = wire if wire in ("packed", "arrow") else "json"
            for content in contents([value]):
                self._by_id.setdefault(content[0], {})[self._read] = Sent(form, content)
                self._order.append((self._read, content[0]))
                self._read += 1
        return True


def contents(values: list[bytes]) -> list[Content]:
    """Return the rows of predictions; those of JSON with four decimals, even if they were Avro before."""
    found = decode_predictions(values)
    is_json = bool(values) and wire_of_value(values[0]) not in ("packed", "arrow")
    shares = [
        {name: as_written(share) for name, share in row.items()} if is_json else row
        for row in found.probabilities
    ]
    return [
        (found.ids[row], found.labels[row], shares[row], int(found.version[row])) for row in range(len(found))
    ]


def chosen(predictions: Predictions, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Predictions:
    """Return some rows (int64[m])."""
    return Predictions(
        predictions.classes,
        [predictions.ids[row] for row in rows.tolist()],
        predictions.prediction[rows],
        predictions.probability[rows],
        predictions.version[rows],
    )
