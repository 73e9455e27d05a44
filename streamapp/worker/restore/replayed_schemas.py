"""Schemas of replayed records: a replay needs those by which the records were read at first."""

from __future__ import annotations

from collections.abc import Iterable

from streamapp.errors import NotYetError
from streamapp.worker.restore.errors import AwaitedSchemasError, RestoreError, ways_out
from topics.columns.records import Schemas
from topics.errors import RegistryError, UnknownSchemaError
from topics.registry.absent_ids import not_registered
from topics.registry.known_schemas import KnownSchemas
from topics.registry.registered_schema import SchemaId


def schemas_at_hand(schemas: KnownSchemas, partition: int, ids: Iterable[SchemaId]) -> Schemas:
    """Return the schemas of ids, without waiting for the registry.

    Raise AwaitedSchemasError if some have to be looked up first, RestoreError if one cannot be had any more.
    """
    needed = set(ids)
    at_hand, absent = schemas.schemas(needed)
    if absent:
        schema_id = min(absent, key=str)
        raise _missing(partition, schema_id, absent[schema_id])
    if missing := needed - at_hand.keys():
        schemas.request(missing)
        raise AwaitedSchemasError(min(map(str, missing)), needed)
    return at_hand


def looked_up_schemas(schemas: KnownSchemas, partition: int, ids: Iterable[SchemaId]) -> Schemas:
    """Return the schemas of ids, for a command, which waits for the registry.

    Raise NotYetError while the registry does not answer, RestoreError if it has lost one of them.
    """
    read_by = {}
    for schema_id in ids:
        try:
            read_by[schema_id] = schemas.look_up(schema_id)
        except UnknownSchemaError:
            raise _missing(partition, schema_id, not_registered(schema_id)) from None
        except RegistryError as error:
            message = f"schema {schema_id} is needed to replay records: {error}"
            raise NotYetError(message) from None
    schemas.forget_unused(())
    return read_by


def _missing(partition: int, schema_id: SchemaId, reason: str) -> RestoreError:
    lost = "which the registry has lost; restore the registry"
    if reason != not_registered(schema_id):
        lost = f"which cannot be used now ({reason}); mend this and start the worker again"
    return RestoreError(
        partition, f"records were read by schema {schema_id}, {lost}, or {ways_out(partition)}"
    )
