"""Registered schema: the text by which a record was written, with its kind and its references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args
from uuid import UUID

SchemaId = int | UUID
"""An id that a registry has assigned: a number, or the GUID of newer registries."""

Kind = Literal["AVRO", "JSON", "PROTOBUF"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that a schema names, such as an Avro type or an imported .proto file."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ReferencedSchema:
    """A schema that another one needs, under the name by which it is referred to."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as a registry has it. The schema of an id never changes."""

    id: SchemaId
    kind: Kind
    text: str
    references: tuple[ReferencedSchema, ...] = ()
    """All schemas that it needs, directly or not; a schema comes after the schemas that it needs itself."""
