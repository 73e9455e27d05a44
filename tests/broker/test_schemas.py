"""A worker reads records by the schemas of a real registry, which goes away and comes back."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import orjson
import pytest

from streamapp.embedded.apicurio import EmbeddedRegistry
from tests.broker.workers import PATIENCE, Installation, WorkerProcess, wait_until
from tests.conftest import Broker
from topics.codecs.by_schema.schema_readers import reader_of
from topics.codecs.frames.wire_format import ID_HEADER, framed
from topics.registry.client import Registry
from topics.registry.registered_schema import Kind
from topics.registry.registry_access import registry_access

pytestmark = pytest.mark.broker

FEATURES = {"type": "record", "name": "Features", "fields": [{"name": "x", "type": "double"}]}
INSTANCE: Any = {
    "type": "record",
    "name": "Instance",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "label", "type": ["null", "string"], "default": None},
        {"name": "features", "type": FEATURES},
    ],
}
LABEL: Any = {
    "type": "record",
    "name": "Label",
    "fields": [{"name": "id", "type": "string"}, {"name": "label", "type": "string"}],
}
JSON_SCHEMA = '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "title": "Instance"}'
PROTO = 'syntax = "proto3"; message Instance { string id = 1; double x = 2; optional string label = 3; }'
UNKNOWN = 2_000_000_000
KEYS = (b"m", b"q")
"""Model keys of the partitions 0 and 1."""


def client_of(registry: EmbeddedRegistry) -> Registry:
    access = registry_access({"schema.registry.url": registry.url})
    assert access is not None
    return Registry(access)


class Story:
    """A worker with a registry, and the producer of its records."""

    def __init__(self, place: Installation, registry: EmbeddedRegistry) -> None:
        self.place = place
        self._producer = place.producer()
        client = client_of(registry)
        schemas: dict[str, tuple[Kind, str]] = {
            "avro": ("AVRO", json.dumps(INSTANCE)),
            "label": ("AVRO", json.dumps(LABEL)),
            "json": ("JSON", JSON_SCHEMA),
            "protobuf": ("PROTOBUF", PROTO),
            "later": ("AVRO", json.dumps(INSTANCE | {"doc": "another id"})),
        }
        self.ids = {
            name: client.register(f"{place.names.instances}.{name}", kind, text)
            for name, (kind, text) in schemas.items()
        }
        self._message = reader_of(client.schema(self.ids["protobuf"]))
        self.sent: list[list[str]] = [[], []]

    def avro(self, name: str, document: dict[str, Any], schema: Any = INSTANCE) -> bytes:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, fastavro.parse_schema(dict(schema)), document)
        return framed(self.ids[name], sink.getvalue())

    def protobuf(self, document: dict[str, Any]) -> bytes:
        message = self._message._types.message_class([0])(**document)  # type: ignore[attr-defined]
        return framed(self.ids["protobuf"], b"\0" + bytes(message.SerializeToString()))

    def instance(self, partition: int, value: Callable[[dict[str, Any]], bytes], headers: Any = None) -> None:
        """Send an instance, written from the object."""
        name = f"p{partition}-{len(self.sent[partition])}"
        self.sent[partition].append(name)
        self.send("instances", partition, value({"id": name, "features": {"x": 1.0}}), headers)

    def send(self, topic: str, partition: int, value: bytes, headers: Any = None) -> None:
        name = getattr(self.place.names, topic)
        self._producer.produce(name, value, KEYS[partition], partition, headers=headers or [])
        assert self._producer.flush(PATIENCE) == 0

    def forms(self, partition: int) -> None:
        """Send an instance of each form."""
        self.instance(partition, lambda row: self.avro("avro", row))
        self.instance(partition, lambda row: framed(self.ids["json"], orjson.dumps(row)))
        self.instance(partition, lambda row: self.protobuf({"id": row["id"], "x": 1.0}))
        self.instance(partition, orjson.dumps)
        header = [(ID_HEADER, b"\0" + self.ids["json"].to_bytes(4, "big"))]
        self.instance(partition, orjson.dumps, header)

    def answered(self) -> list[list[str]]:
        """Return the ids of the answers, by partition."""
        answers: list[list[str]] = [[], []]
        for answer in self.place.read(self.place.names.predictions):
            answers[answer["partition"]].append(answer["id"])
        return answers

    def wait_until_answered(self, partition: int, worker: WorkerProcess) -> None:
        wait_until(
            lambda: self.answered()[partition] == self.sent[partition],
            PATIENCE,
            lambda: f"{self.answered()} of {self.sent}\n{worker.log}",
        )


def waits_for(worker: WorkerProcess, words: str) -> None:
    def waits() -> bool:
        assert worker.code is None, worker.log
        status, _ = worker.page("/readyz")
        return status == 503 and words in worker.page("/readyz?verbose")[1]

    wait_until(waits, PATIENCE, lambda: worker.page("/readyz?verbose")[1] + worker.log)


def test_the_registry_goes_away_and_comes_back(broker: Broker, tmp_path: Path) -> None:
    with EmbeddedRegistry() as registry:
        place = Installation(
            broker.bootstrap_servers,
            "schemas.",
            2,
            tmp_path,
            {
                "GROVE_SCHEMA_REGISTRY_URL": registry.url,
                "GROVE_SNAPSHOT_INTERVAL_MS": "3600000",  # so that a restore has records to replay
                "GROVE_SNAPSHOT_MAX_REPLAY_MS": "3600000",
                "GROVE_KAFKA_SESSION_TIMEOUT_MS": "6000",
            },
            module="streamapp worker",
        )
        story = Story(place, registry)
        with place.worker("w") as worker:
            worker.wait_until_ready()
            for partition in (0, 1):
                story.forms(partition)
                story.wait_until_answered(partition, worker)
            labels = [story.avro("label", {"id": name, "label": "a"}, LABEL) for name in story.sent[0]]
            for value in labels:
                story.send("labels", 0, value)
            story.send("instances", 1, framed(UNKNOWN, b"x"))
            story.send("instances", 1, framed(story.ids["avro"], b"\x02"))
            place.wait_for_lag_0(alive=[worker])

            registry.stop(kill=True)
            story.instance(0, lambda row: story.avro("later", row))
            story.forms(0)
            story.forms(1)  # known ids, on another partition
            waits_for(worker, f"waits for schema {story.ids['later']}: schema.registry.url=")
            story.wait_until_answered(1, worker)
            assert len(story.answered()[0]) == 5, "the record whose schema is not known holds its partition"
            assert worker.metric("grove_schema_waiting_partitions") == 1
            assert worker.page("/livez")[0] == 200
            wait_until(
                lambda: worker.metric("grove_schema_lookup_failures_total") > 1, PATIENCE, lambda: worker.log
            )
            assert worker.log.count("is looked up again until it is there") == 1
            registry.start()
            story.wait_until_answered(0, worker)
            worker.wait_until_ready()
            assert worker.metric("grove_schema_waiting_partitions") == 0

            registry.stop(kill=True)
            worker.kill()
        with place.worker("w") as worker:
            waits_for(worker, "waits for schema 1: schema.registry.url=")
            story.forms(0)
            registry.start()
            worker.wait_until_ready()
            place.wait_for_lag_0(alive=[worker])
            assert story.answered() == story.sent
            assert worker.terminate() == 0, worker.log
    letters = [(dict(letter.headers()), letter.value()) for letter in place.raw(place.names.dead_letters)]
    assert {headers["grove-dlq-reason"]: value for headers, value in letters} == {
        b"unknown-schema": framed(UNKNOWN, b"x"),
        b"bad-value": framed(story.ids["avro"], b"\x02"),
    }
    assert len(letters) == 2
