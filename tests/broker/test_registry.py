"""The client of a schema registry against a real one."""

from __future__ import annotations

import json
import uuid

import pytest

from topics.errors import RegistryError, UnknownSchemaError
from topics.registry.client import Registry
from topics.registry.registered_schema import Kind, Reference, ReferencedSchema
from topics.registry.registry_access import registry_access

pytestmark = pytest.mark.broker

AVRO = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "double"}]}
JSON = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
INNER = 'syntax = "proto3"; package p; message Inner { double x = 1; }'
OUTER = 'syntax = "proto3"; package p; import "inner.proto"; message Outer { Inner inner = 1; }'


@pytest.fixture
def registry(registry_url: str) -> Registry:
    access = registry_access({"schema.registry.url": registry_url})
    assert access is not None
    return Registry(access)


@pytest.fixture
def subject() -> str:
    return f"{uuid.uuid4().hex[:8]}-value"


def test_schemas_of_all_kinds_come_back_by_id(registry: Registry, subject: str) -> None:
    inner = registry.register(f"{subject}.inner", "PROTOBUF", INNER)
    assert registry.schema(inner).kind == "PROTOBUF"
    reference = Reference("inner.proto", f"{subject}.inner", 1)
    outer = registry.schema(registry.register(f"{subject}.outer", "PROTOBUF", OUTER, [reference]))
    assert outer.references == (ReferencedSchema("inner.proto", INNER),)
    schemas: tuple[tuple[Kind, object], ...] = (("AVRO", AVRO), ("JSON", JSON))
    for kind, schema in schemas:
        registered = registry.schema(registry.register(subject + kind, kind, json.dumps(schema)))
        assert (registered.kind, json.loads(registered.text)) == (kind, schema)


def test_a_registered_schema_keeps_its_id(registry: Registry, registry_url: str, subject: str) -> None:
    text = json.dumps(AVRO)
    access = registry_access({"schema.registry.url": registry_url})
    assert access is not None
    assert registry.register(subject, "AVRO", text) == Registry(access).register(subject, "AVRO", text)


def test_ids_that_the_registry_does_not_have(registry: Registry) -> None:
    for schema_id in (2_000_000_000, uuid.uuid4()):
        with pytest.raises(UnknownSchemaError, match="does not have"):
            registry.schema(schema_id)


def test_a_text_that_is_no_schema_is_refused(registry: Registry, subject: str) -> None:
    with pytest.raises(RegistryError, match="HTTP status 422"):
        registry.register(subject, "AVRO", "no schema")
