"""Demo watch: reads and counts the output topics of the demo."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from streamapp.demo.demo_models import DemoModel
from streamapp.demo.tally import ModelTally, Truth
from topics.codecs import (
    decode_drift_alerts,
    decode_feature_requests,
    decode_label_requests,
    decode_predictions,
)
from topics.codecs.avro.output_reader import AS_WRITTEN, OutputReader
from topics.columns.records import DriftAlert, FeatureRequest
from topics.definitions import TopicNames
from topics.errors import BrokerError

BATCH = 5000


class Watch:
    """A consumer of predictions, requests, drift alerts and dead letters, from their beginning."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        names: TopicNames,
        partitions: int,
        truth: Truth,
        models: Sequence[DemoModel],
        group: str,
        outputs: OutputReader = AS_WRITTEN,
    ) -> None:
        """group: a name that no other client has; nothing is committed."""
        self._outputs = outputs
        self._names = names
        self._consumer = Consumer({**kafka, "group.id": group, "enable.auto.commit": False, "log_level": 0})
        topics = (
            names.predictions,
            names.label_requests,
            names.feature_requests,
            names.drift_alerts,
            names.dead_letters,
        )
        self._consumer.assign([TopicPartition(t, p, 0) for t in topics for p in range(partitions)])
        self.shown = models
        self.truth = truth
        self.models = {model.key: ModelTally(truth) for model in models}
        self.dead_letters = 0
        self.last_answer: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def read(self, seconds: float) -> int:
        """Count the records that arrive within `seconds`, at most one batch; return the number of records."""
        messages = self._consumer.consume(BATCH, seconds)
        by_topic: dict[str, list[Message]] = {}
        for message in messages:
            error = message.error()
            if error is not None and not error.retriable():
                raise BrokerError(error.str()) from KafkaException(error)
            if error is None:
                by_topic.setdefault(str(message.topic()), []).append(message)
        self._predictions(by_topic.get(self._names.predictions, []))
        self._requests(by_topic.get(self._names.label_requests, []))
        self._feature_requests(by_topic.get(self._names.feature_requests, []))
        for message in by_topic.get(self._names.drift_alerts, []):
            (alert,) = decode_drift_alerts(self._values([message]))
            if isinstance(alert, DriftAlert) and alert.level == "drift":
                self._model(message).drifts += 1
        self.dead_letters += len(by_topic.get(self._names.dead_letters, []))
        return len(messages)

    def _predictions(self, messages: list[Message]) -> None:
        if not messages:
            return
        self.last_answer = time.monotonic()
        received = decode_predictions(self._values(messages))
        models = [self._model(message) for message in messages]
        answers = zip(
            received.record.tolist(),
            received.ids,
            received.labels,
            received.version.tolist(),
            received.acquired,
            strict=True,
        )
        for record, row, label, version, acquired in answers:
            if row is not None:
                models[record].answer(int(row), label, version, acquired)

    def _requests(self, messages: list[Message]) -> None:
        if not messages:
            return
        requests = decode_label_requests(self._values(messages))
        assert requests.record is not None
        for record, row in zip(requests.record.tolist(), requests.instance_ids, strict=True):
            self._model(messages[record]).ask(int(row))

    def _feature_requests(self, messages: list[Message]) -> None:
        requests = decode_feature_requests([_value(message) for message in messages])
        for message, request in zip(messages, requests, strict=True):
            assert isinstance(request, FeatureRequest)
            self._model(message).ask_features(request.request_id, len(request.features))

    def _values(self, messages: Sequence[Message]) -> list[bytes]:
        return self._outputs.texts([_value(message) for message in messages])

    def _model(self, message: Message) -> ModelTally:
        key = message.key()
        return self.models[key.decode() if isinstance(key, bytes) else str(key)]

    @property
    def answered(self) -> int:
        """Distinct records answered."""
        return sum(model.answered for model in self.models.values())

    @property
    def asked(self) -> int:
        """Distinct requested labels."""
        return sum(model.asked for model in self.models.values())

    @property
    def drifts(self) -> int:
        return sum(model.drifts for model in self.models.values())

    @property
    def complete(self) -> bool:
        """Whether every record of every model has its answer."""
        return all(model.complete for model in self.models.values())


def _value(message: Message) -> bytes:
    value = message.value()
    return value if isinstance(value, bytes) else b""
