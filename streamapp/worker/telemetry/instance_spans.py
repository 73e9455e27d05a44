"""Instance spans: in which span an instance was answered, for the link from the span of its label.

A label may come hours after its instance, perhaps to another worker. The newest instances of this process
that may still get a label are remembered, up to a fixed number; no restart or takeover restores them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from opentelemetry.trace import SpanContext

from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.telemetry.span_links import TraceHeaders
from topics.columns.records import FeatureValues, Labels, RawRecords

MAX_INSTANCES: Final = 100_000


class Answered(NamedTuple):
    """The answer to an instance."""

    context: SpanContext  # of the span in which it was answered
    headers: TraceHeaders | None  # of the instance; None: its producer does not sample it
    topic: str
    offset: int


class InstanceSpans:
    """The newest instances that may get a label, by partition, model key and id."""

    def __init__(self, *, keep_all: bool, most: int = MAX_INSTANCES) -> None:
        """`keep_all`: every instance may get a label; else those whose label was requested."""
        self._keep_all = keep_all
        self._most = most
        self._answered: OrderedDict[tuple[int, str, str], Answered] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of instances remembered."""
        return len(self._answered)

    def remember(
        self, context: SpanContext, raw: RawRecords, effects: Effects, sampled: Mapping[int, TraceHeaders]
    ) -> None:
        """Remember instances of a run; `sampled`: headers of its sampled records, by record."""
        topic, partition, offsets = raw.topic, raw.partition, raw.offsets
        for record, key, name in self._rows(raw, effects, sampled):
            place = partition, key, name
            self._answered[place] = Answered(context, sampled.get(record), topic, offsets[record])
            self._answered.move_to_end(place)
        while len(self._answered) > self._most:
            self._answered.popitem(last=False)

    def _rows(
        self, raw: RawRecords, effects: Effects, sampled: Mapping[int, TraceHeaders]
    ) -> Iterator[tuple[int, str, str]]:
        """Yield record, model key and id of each row to remember."""
        if self._keep_all or sampled:
            for answers in effects.answers:
                for record, name in zip(answers.record.tolist(), answers.predictions.ids, strict=True):
                    if self._keep_all or record in sampled:
                        yield record, _text(raw.keys[record] if answers.key is None else answers.key), name
        if not self._keep_all:
            for group in effects.requests:
                for record, name in zip(group.record.tolist(), group.requests.instance_ids, strict=True):
                    yield record, _text(raw.keys[record] if group.key is None else group.key), name

    def of_rows(self, raw: RawRecords, batch: Labels | FeatureValues) -> Iterator[Answered]:
        """Yield the remembered instances that rows of a run name."""
        n = len(raw)
        for record, key, name in zip(batch.record.tolist(), batch.key.tolist(), batch.ids, strict=True):
            answered = self._answered.get((raw.partition, batch.keys[key], name))
            if record < n and answered is not None:
                yield answered


def _text(key: bytes | None) -> str:
    return (key or b"").decode("utf-8", "replace")
