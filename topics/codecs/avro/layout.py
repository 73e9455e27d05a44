"""Layout of a writer schema: the cells of its records, with their paths, roles and names.

A record with a field `features` is read as the JSON object of the same names. The fields of any other record
of `instances` are its features, as the columns of an Arrow block are. Fields of nested records are features
with dotted names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from topics.codecs.avro.avro_schema import NAME, AvroSchema, name_of
from topics.codecs.json.compiled.shape import FEATURE, Members, Shape
from topics.codecs.limits import Limits
from topics.errors import SchemaError

FEATURES: Final = "features"
MAX_CELLS: Final = Limits().features_max
"""Features of a record, as in the other formats; a schema with more is not read."""
MAX_FIELDS: Final = 4 * MAX_CELLS
"""Fields of the records that are taken apart: records without fields have no cells, however many they are."""
MAX_PATH: Final = 100
"""Names of a path, at most."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A place of a record that holds one value."""

    path: Path
    role: int
    name: str
    """Of the feature; of the field for other roles."""
    is_parted: bool = False
    """Whether the place may hold a record as well, whose fields are cells of their own."""


@dataclass(frozen=True)
class Layout:
    """The cells of a schema's records: members first, then the features in the order of the schema."""

    cells: tuple[Cell, ...]
    is_open: bool
    """Whether the schema lacks the names of the features: they are a map, an array, or of several types."""
    has_features: bool
    """Whether the schema has features at all."""
    is_flat: bool
    """Whether the features are fields of the record itself."""

    @property
    def features(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.role == FEATURE)

    @cached_property  # read for each run, and as long as the schema is wide
    def shape(self) -> Shape:
        """The cells as the shape of a JSON record: both have the same columns."""
        roles = tuple(cell.role for cell in self.cells)
        features = self.features
        names = tuple(cell.name for cell in features) if features else None
        return Shape((), roles, names, roles.index(FEATURE) if features else 0)


def layout_of(schema: AvroSchema, members: Members, *, flat: bool) -> Layout | None:
    """Return the layout of a schema, None if its values are not records.

    `flat`: features need no field of their own. Raise SchemaError if it has too many cells, or a name twice.
    """
    root = schema.type_of(schema.root)
    if name_of(root) != "record":
        return None
    fields = {field["name"]: field["type"] for field in root["fields"]}
    cells = [Cell((name,), role, name) for name, role in members.roles.items() if name in fields]
    is_open = False
    features: list[Cell] = []
    if FEATURES in fields:
        inner = record_of(schema, fields[FEATURES])
        is_open = inner is None or _has_other_branches(schema, fields[FEATURES])
        if inner is not None and not is_open:
            features = _leaves(schema, inner, (FEATURES,), (root["name"], inner["name"]))
    elif flat:
        own = {**root, "fields": [part for part in root["fields"] if part["name"] not in members.roles]}
        features = _leaves(schema, own, (), (root["name"],))
    names = [cell.name for cell in features]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        message = f"two fields of the schema are the feature {twice!r}; a feature must have one field"
        raise SchemaError(message)
    has_field = FEATURES in fields
    return Layout((*cells, *features), is_open, has_field or flat, is_flat=flat and not has_field)


def record_of(schema: AvroSchema, node: Any) -> Mapping[str, Any] | None:
    """Return the record that a type is, or may be: the only record of a union without maps; else None."""
    branches = node if isinstance(node, list) else [node]
    types = [schema.type_of(branch) for branch in branches]
    records = [kind for kind in types if name_of(kind) == "record"]
    if len(records) != 1 or any(name_of(kind) == "map" for kind in types):
        return None
    record: Mapping[str, Any] = records[0]
    return record


def _has_other_branches(schema: AvroSchema, node: Any) -> bool:
    """Whether a type that may be a record may be something else than this or null."""
    branches = node if isinstance(node, list) else [node]
    return any(name_of(schema.type_of(branch)) not in ("record", "null") for branch in branches)


def _leaves(schema: AvroSchema, record: Mapping[str, Any], path: Path, above: tuple[str, ...]) -> list[Cell]:
    """Return the cells of a record; `above` are the names of the records around it, which end a recursion."""
    cells: list[Cell] = []
    n_fields = 0
    open_records = [(path, "", above, iter(record["fields"]))]
    while open_records:
        path, prefix, above, fields = open_records[-1]
        field = next(fields, None)
        if field is None:
            open_records.pop()
            continue
        n_fields += 1
        name = prefix + field.get(NAME, field["name"])
        here, kind = (*path, field["name"]), field["type"]
        inner = record_of(schema, kind)
        nested = inner is not None and inner["name"] not in above
        if not nested or _has_other_branches(schema, kind):
            cells.append(Cell(here, FEATURE, name, nested))
        if nested and inner is not None:
            open_records.append((here, f"{name}.", (*above, inner["name"]), iter(inner["fields"])))
        if len(cells) > MAX_CELLS or n_fields > MAX_FIELDS:
            message = f"the records of the schema have more than {MAX_CELLS:,} features"
            raise SchemaError(message)
        if len(open_records) > MAX_PATH:
            message = f"the schema has more than {MAX_PATH} records within each other"
            raise SchemaError(message)
    return cells
