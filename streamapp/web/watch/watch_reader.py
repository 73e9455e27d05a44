"""Watch reader: evaluations and model events, from the positions in the file on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from confluent_kafka import Message

from streamapp.web.topic_reader import Positions, Runs, TopicReader
from streamapp.web.watch.watched import LARGEST, Evaluated, Said, Watched
from topics.codecs import decode_evaluations, decode_model_events
from topics.codecs.avro.output_reader import AS_WRITTEN, OutputReader
from topics.columns.records import EvaluationRecord, ModelEvent
from topics.definitions import TopicNames


class WatchReader(TopicReader):
    """Fills the file of watched models; `run` in one thread, `stop` from any."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        names: TopicNames,
        watched: Watched,
        since_ms: int | None = None,
        outputs: OutputReader = AS_WRITTEN,
    ) -> None:
        """Connect to the broker; `since_ms`: time from which topics are read of which nothing is stored."""
        self._names, self._watched, self._outputs = names, watched, outputs
        super().__init__(kafka, names.prefix, (names.evaluations, names.model_events), since_ms)

    def _begin(self, origin: dict[str, str]) -> bool:
        return self._watched.begin(origin)

    def _stored(self, topic: str) -> Mapping[int, int]:
        return self._watched.positions(topic)

    def _store(self, runs: Runs, positions: Positions) -> None:
        evaluations: list[Evaluated] = []
        events: list[Said] = []
        for (topic, _), messages in runs.items():
            if topic == self._names.evaluations:
                evaluations += evaluations_of(messages, self._outputs)
            else:
                events += events_of(messages)
        self._watched.apply(evaluations, events, positions)


MEASURES: Final = tuple(column.name for column in fields(EvaluationRecord) if column.type in ("int", "float"))
"""Fields of an evaluation that are numbers."""


def evaluations_of(messages: Sequence[Message], outputs: OutputReader = AS_WRITTEN) -> list[Evaluated]:
    """Return the evaluations among records of one partition; other records are left out."""
    decoded = decode_evaluations(outputs.texts([message.value() or b"" for message in messages]))
    return [
        Evaluated(key, message.partition() or 0, message.timestamp()[1], record)
        for message, record in zip(messages, decoded, strict=True)
        if isinstance(record, EvaluationRecord)
        and _are_numbers(*(getattr(record, name) for name in MEASURES))
        and (record.classes is None or _are_counts(record.classes))
        and isinstance(record.measured, str | None)
        and _are_figures(record.per_class, record.confusion)
        and isinstance(record.advice, str | None)
        and _is_curve(record.learning_curve)
        and (key := _key(message)) is not None
    ]


def events_of(messages: Sequence[Message]) -> list[Said]:
    """Return the model events among records of one partition; other records are left out."""
    decoded = decode_model_events([message.value() or b"" for message in messages])
    return [
        Said(key, message.partition() or 0, record)
        for message, record in zip(messages, decoded, strict=True)
        if isinstance(record, ModelEvent)
        and isinstance(record.detail, dict)
        and isinstance(record.event, str)
        and isinstance(record.topic, str)
        and _are_numbers(record.offset, record.time_ms, record.records, record.version)
        and (key := _key(message)) is not None
    ]


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, int | float) and not abs(value) > LARGEST for value in values)


def _are_counts(counts: object) -> bool:
    return isinstance(counts, dict) and _are_numbers(*counts.values())


def _are_figures(per_class: object, confusion: object) -> bool:
    """Return whether figures by class are numbers or None, and a matrix is square and of numbers."""
    if per_class is not None and not isinstance(per_class, dict):
        return False
    for figures in (per_class or {}).values():
        if not isinstance(figures, dict) or not _are_numbers(*(n for n in figures.values() if n is not None)):
            return False
    if confusion is None:
        return True
    if not isinstance(confusion, dict):
        return False
    names, rows = confusion.get("classes"), confusion.get("weights")
    if not isinstance(names, list) or not isinstance(rows, list) or len(rows) != len(names):
        return False
    return all(isinstance(row, list) and len(row) == len(names) and _are_numbers(*row) for row in rows)


def _is_curve(curve: object) -> bool:
    """Return whether a learning curve has two labels and three accuracies for each interval, or is None."""
    if curve is None:
        return True
    if not isinstance(curve, dict):
        return False
    labels, accuracies = curve.get("labels"), curve.get("accuracy")
    if not isinstance(labels, list) or not isinstance(accuracies, list) or len(labels) != len(accuracies):
        return False
    rows = [(row, 2) for row in labels] + [(row, 3) for row in accuracies]
    return all(isinstance(row, list) and len(row) == size and _are_numbers(*row) for row, size in rows)


def _key(message: Message) -> str | None:
    raw = message.key()
    try:
        key = raw.decode() if isinstance(raw, bytes) else raw
    except UnicodeDecodeError:
        return None
    return key or None
