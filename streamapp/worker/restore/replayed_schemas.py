"""Schemas of replayed records: a replay needs those by which the records were read at first."""

from __future__ import annotations

from collections.abc import Iterable

from streamapp.errors import NotYetError
from streamapp.worker.restore.errors import RestoreError, ways_out
from topics.columns.records import Schemas
from topics.errors import RegistryError, UnknownSchemaError
from topics.registry.known_schemas import KnownSchemas
from topics.registry.registered_schema import SchemaId


def schemas_of(schemas: KnownSchemas, partition: int, ids: Iterable[SchemaId]) -> Schemas:
    """Return the schemas of ids.

    Raise NotYetError while the registry does not answer, RestoreError if it has lost one of them.
    """
    read_by = {}
    for schema_id in ids:
        try:
            read_by[schema_id] = schemas.look_up(schema_id)
        except UnknownSchemaError as error:
            reason = (
                f"records were read by schema {schema_id}, which the registry has lost: {error}; restore the "
                f"registry, or {ways_out(partition)}"
            )
            raise RestoreError(partition, reason) from None
        except RegistryError as error:
            message = f"schema {schema_id} is needed to replay records: {error}"
            raise NotYetError(message) from None
    return read_by
