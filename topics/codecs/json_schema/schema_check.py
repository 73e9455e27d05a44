"""Schema check: whether bodies of JSON fit a JSON schema, by jsonschema-rs (about 1 µs each)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from topics.codecs.crowding import SMALL, crowding
from topics.codecs.flaws import Flaw
from topics.errors import Reason
from topics.registry.registered_schema import RegisteredSchema

MOST_CHECKS: Final = 4096
BASE: Final = "json-schema:///"  # of references in a schema without an id


@lru_cache(MOST_CHECKS)
def check_of(schema: RegisteredSchema) -> SchemaCheck:
    """Return the check of a schema; one that is not valid refuses every body."""
    return SchemaCheck(schema)


class SchemaCheck:
    """Checks bodies by one schema and the schemas that it refers to; nothing is fetched."""

    def __init__(self, schema: RegisteredSchema) -> None:
        from jsonschema_rs import Registry, validator_for

        self._flaw: Flaw | None = None
        self._validator: Any = None
        try:
            referenced = [(reference.name, orjson.loads(reference.text)) for reference in schema.references]
            resources = [*referenced, *((BASE + name, document) for name, document in referenced)]
            self._validator = validator_for(
                orjson.loads(schema.text), registry=Registry(resources), offline=True
            )
        except ValueError as error:  # of both packages
            first = str(error).partition("\n")[0]
            self._flaw = Flaw(
                Reason.BAD_VALUE, f"schema {schema.id}: the schema is not a JSON schema: {first}"
            )

    def fit(self, bodies: Sequence[bytes | None]) -> bool:
        """Whether all bodies are known to fit: False if one is large or has a flaw of any kind."""
        if self._flaw is not None:
            return False
        loads, is_valid = orjson.loads, self._validator.is_valid
        try:
            return all(body is not None and len(body) <= SMALL and is_valid(loads(body)) for body in bodies)
        except orjson.JSONDecodeError:
            return False

    def flaw(self, body: bytes, max_values: int) -> Flaw | None:
        """Return why a body does not fit, with the field and the rule; None if it fits, or is no JSON."""
        if self._flaw is not None:
            return self._flaw
        if (crowded := crowding(body, max_values)) is not None:
            return crowded
        from jsonschema_rs import ValidationError

        try:
            self._validator.validate(orjson.loads(body))
        except orjson.JSONDecodeError:
            return None  # the codec has the words for it
        except ValidationError as error:
            field = ".".join(map(str, error.instance_path)) or "the record"
            return Flaw(Reason.BAD_VALUE, f"{field}: {error.message}")
        return None
