"""Records in Avro on a real broker, with a real registry."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.broker.workers import PATIENCE, UNHURRIED, Installation
from tests.conftest import Broker
from tests.unit.topics.memory_dataset import counting
from topics.codecs.avro.avro_schema import AvroSchema
from topics.codecs.avro.avro_values import values
from topics.codecs.avro.output_reader import OutputReader
from topics.codecs.avro.output_schemas import current
from topics.codecs.frames.wire_format import PREFIX_BYTES, id_before_body
from topics.errors import RegistryError
from topics.oracle import Oracle, OraclePlan
from topics.registry.client import Registry
from topics.registry.registry_access import registry_access

pytestmark = pytest.mark.broker

N = 200
SPEC = {"learner": "h-tree", "query": "always", "budget": {"name": "count", "limit": 1.0}}


@pytest.fixture
def registry(registry_url: str) -> Registry:
    access = registry_access({"schema.registry.url": registry_url})
    assert access is not None
    return Registry(access)


def contents(place: Installation, topic: str) -> list[bytes]:
    return [message.value() or b"" for message in place.raw(topic)]


def test_a_worker_writes_avro_and_an_oracle_answers_it(
    broker: Broker, registry: Registry, registry_url: str, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "avro.", 1, tmp_path, module="streamapp worker")
    settings: Any = UNHURRIED | {
        "GROVE_MODEL_SPEC": orjson.dumps(SPEC).decode(),
        "GROVE_OUTPUT_FORMAT": "avro",
        "GROVE_SCHEMA_REGISTRY_URL": registry_url,
        "GROVE_EVALUATION_EVERY": "100",
    }
    producer, kafka = place.producer(), {"bootstrap.servers": broker.bootstrap_servers}
    for number in range(N):
        value = orjson.dumps({"id": str(number), "features": {"a": number % 7}})
        producer.produce(place.names.instances, value, b"m", 0)
    assert producer.flush(PATIENCE) == 0
    outputs = OutputReader(registry.schema)
    plan = OraclePlan(names=place.names, group_id=f"{place.prefix}oracle", limit=N)
    with place.worker("w", **settings) as worker:
        worker.wait_until_ready()
        report = Oracle(counting(N), plan, kafka, outputs).run()
        place.wait_for_lag_0(alive=[worker])
        learned = worker.metric_of("grove_records_total", topic="labels", outcome="learned")
        assert worker.terminate() == 0
    assert (report.requests, report.answered, learned) == (N, N, N), worker.log
    for topic in (place.names.predictions, place.names.label_requests, place.names.evaluations):
        written = contents(place, topic)
        (schema_id,) = {id_before_body(value) for value in written}
        assert schema_id is not None
        assert registry.schema(schema_id).kind == "AVRO"
        assert all(text.startswith(b"{") for text in outputs.texts(written))
    sent = [json.loads(text) for text in outputs.texts(contents(place, place.names.predictions))]
    assert [answer["id"] for answer in sent] == [str(number) for number in range(N)]


def test_a_replay_in_avro_registers_its_schemas(
    broker: Broker, registry: Registry, registry_url: str, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "sent.", 2, tmp_path)
    environment = os.environ | {
        "GROVE_KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
        "GROVE_TOPICS_PREFIX": place.prefix,
        "GROVE_SCHEMA_REGISTRY_URL": registry_url,
    }
    command = ["replay", "--data", "gen:sea?n=50", "--format", "avro", "--labels", "apart", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "streamapp", *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["instances"] == 50
    for topic, fields in ((place.names.instances, ["id", "features"]), (place.names.labels, ["id", "label"])):
        written = contents(place, topic)
        (schema_id,) = {id_before_body(value) for value in written}
        assert schema_id is not None
        schema = registry.schema(schema_id)
        assert registry.register(f"{topic}-value", "AVRO", schema.text) == schema_id
        rows = values(AvroSchema.of(schema.text), [value[PREFIX_BYTES:] for value in written])
        assert {row["id"] for row in rows} == {str(number) for number in range(50)}
        assert list(rows[0]) == fields


def test_the_registry_refuses_a_version_that_cannot_read_older_records(
    registry: Registry, registry_url: str
) -> None:
    subject = f"backward-{os.getpid()}-value"
    registry.register(subject, "AVRO", current("prediction"))
    request = urllib.request.Request(
        f"{registry_url}/config/{subject}",
        data=b'{"compatibility":"BACKWARD"}',
        headers={"Content-Type": "application/json"},
        method="PUT",
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        assert response.status == 200
    schema = json.loads(current("prediction"))
    added = {"name": "new", "type": "string"}
    with pytest.raises(RegistryError):
        registry.register(subject, "AVRO", json.dumps(schema | {"fields": [*schema["fields"], added]}))
    added["default"] = ""
    assert registry.register(subject, "AVRO", json.dumps(schema | {"fields": [*schema["fields"], added]}))
