"""Records by schemas of a registry: live and replayed, the state is the same."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from streamapp.errors import NotYetError
from streamapp.worker.journal.entry import Entry, decode, encode
from streamapp.worker.restore.errors import AwaitedSchemasError, RestoreError
from streamapp.worker.restore.journal_replay import Replay, SchemasOf
from streamapp.worker.restore.replayed_schemas import looked_up_schemas, schemas_at_hand
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from tests.registry_endpoint import RegistryEndpoint, answered, failed
from tests.topology.logged import Logged
from tests.topology.partition import ALWAYS, PARTITION, Record, config
from topics.codecs.frames.schema_ids import schema_ids
from topics.codecs.frames.wire_format import framed
from topics.columns.records import Schemas
from topics.errors import ReaderError
from topics.registry import known_schemas
from topics.registry.absent_ids import not_registered
from topics.registry.client import Registry
from topics.registry.known_schemas import KnownSchemas
from topics.registry.registered_schema import RegisteredSchema, SchemaId
from topics.registry.registry_access import registry_access

JSON = RegisteredSchema(1, "JSON", '{"type": "object"}')
SCHEMAS: Schemas = {1: JSON}
UNKNOWN = 9


class BySchemas(Logged):
    """A partition whose records name schemas; the registry does not have UNKNOWN."""

    def __init__(self) -> None:
        super().__init__(config(ALWAYS, schemas=True))

    def process(self, run: TaskRun) -> tuple[Effects, Any]:
        named = zip(run.raw.offsets, schema_ids(run.raw), strict=True)
        unknown = {offset: not_registered(UNKNOWN) for offset, number in named if number == UNKNOWN}
        return super().process(replace(run, raw=run.raw.read_by(SCHEMAS), unknown=unknown))

    def replayed(self, schemas: SchemasOf | None, piece: int = 1000) -> Task:
        replay = Replay(PARTITION, self.reader(piece), schemas=schemas)
        for entry in self.ledger.cut():
            read = decode(encode(entry))
            assert isinstance(read, Entry)
            replay.apply(read)
        assert replay.task is not None
        return replay.task


def record(source: Any, document: dict[str, Any], number: int = 1, at: int = 0) -> Record:
    return Record(source, b"m", framed(number, orjson.dumps(document)), at)


def fed() -> BySchemas:
    partition = BySchemas()
    partition.feed(record("controls", {"command": "create", "spec": {"query": "always"}}))
    instances = [
        record("instances", {"id": f"i{row}", "features": {"x": row % 7}}, at=1000 * row) for row in range(12)
    ]
    instances[4] = Record("instances", b"m", framed(UNKNOWN, b"x"), 3_600_000)
    instances[7] = record("instances", {"id": "bad"}, at=7000)
    partition.feed(*instances)
    labels = [record("labels", {"id": f"i{row}", "label": "ab"[row % 2]}, at=20_000) for row in range(12)]
    labels[5] = record("labels", {"id": "i5", "label": "a"}, UNKNOWN)
    partition.feed(*labels)
    partition.feed(record("controls", {"command": "freeze"}, UNKNOWN))
    return partition


def known(_: int, ids: Iterable[SchemaId]) -> Schemas:
    assert UNKNOWN not in ids
    return {number: SCHEMAS[number] for number in ids}


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_a_replay_reads_the_records_in_the_same_way(piece: int) -> None:
    partition = fed()
    reasons = [letter.reason for letter in partition.dead_letters]
    assert sorted(reasons) == ["missing-field", *["unknown-schema"] * 3]
    assert len(partition.predictions) == 10
    assert partition.counts["labels.learned"] == 9
    assert partition.replayed(known, piece).digest() == partition.task.digest()


def test_a_replay_without_a_registry_names_the_setting() -> None:
    with pytest.raises(RestoreError, match=r"set schema\.registry\.url to the registry that has schema 1"):
        fed().replayed(None)


def test_a_replay_waits_for_a_registry_that_is_away_and_fails_for_a_lost_schema() -> None:
    with RegistryEndpoint(schemas__ids__1=failed(503, 50301)) as endpoint:
        access = registry_access({"schema.registry.url": endpoint.url})
        assert access is not None
        schemas = KnownSchemas(Registry(access), lambda _: None)
        with pytest.raises(
            NotYetError, match=r"schema 1 is needed to replay records: schema\.registry\.url="
        ):
            looked_up_schemas(schemas, PARTITION, [1])
        with pytest.raises(RestoreError, match="schema 2, which the registry has lost"):
            looked_up_schemas(schemas, PARTITION, [2])
        endpoint.answers["/schemas/ids/1"] = answered(schema=JSON.text, schemaType="JSON")
        assert looked_up_schemas(schemas, PARTITION, [1]) == SCHEMAS


def test_a_worker_has_schemas_looked_up_and_restores_later() -> None:
    with RegistryEndpoint(schemas__ids__1=answered(schema=JSON.text, schemaType="JSON")) as endpoint:
        access = registry_access({"schema.registry.url": endpoint.url})
        assert access is not None
        schemas, results = KnownSchemas(Registry(access), lambda _: None), threading.Semaphore(0)
        schemas.on_result(results.release)
        with pytest.raises(AwaitedSchemasError, match="schema 1 is needed") as awaited:
            schemas_at_hand(schemas, PARTITION, [1, 2])
        assert awaited.value.ids == {1, 2}
        assert results.acquire(timeout=60)
        assert results.acquire(timeout=60)
        assert schemas_at_hand(schemas, PARTITION, [1]) == SCHEMAS
        with pytest.raises(RestoreError, match="schema 2, which the registry has lost"):
            schemas_at_hand(schemas, PARTITION, [1, 2])


def test_a_replay_whose_reader_cannot_be_made_ends_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(schema: RegisteredSchema) -> None:
        message = "protoc ends with code -11"
        raise ReaderError(message)

    monkeypatch.setattr(known_schemas, "MOST_TRIES", 1)
    with RegistryEndpoint(schemas__ids__1=answered(schema=JSON.text, schemaType="JSON")) as endpoint:
        access = registry_access({"schema.registry.url": endpoint.url})
        assert access is not None
        schemas, result = KnownSchemas(Registry(access), fails), threading.Event()
        schemas.on_result(result.set)
        schemas.request([1])
        assert result.wait(60)
        with pytest.raises(RestoreError, match=r"schema 1, which cannot be used now \(.*code -11\)"):
            schemas_at_hand(schemas, PARTITION, [1])


def test_the_journal_holds_whether_schemas_are_in_use() -> None:
    assert '"schemas"' not in TaskConfig().to_json()
    assert TaskConfig.from_json(TaskConfig(schemas=True).to_json()).schemas is True
    assert TaskConfig.from_json(TaskConfig().to_json()).schemas is False
