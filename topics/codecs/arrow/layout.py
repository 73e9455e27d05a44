"""Block layout: the meaning of each column of an Arrow schema, checked once for all blocks that have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from topics.codecs.flaws import Flaw, quote
from topics.errors import Reason

INSTANCE_ROLES = frozenset({"id", "label", "weight"})
LABEL_ROLES = INSTANCE_ROLES | {"declined", "annotator"}

# Schemas are a few hundred bytes; a larger schema is unusual and not worth caching.
KEPT_BYTES = 16 * 1024
KEPT = 128


@dataclass(frozen=True, slots=True, eq=False)
class ArrowLayout:
    """The places of the parts of a row."""

    schema: pa.Schema
    roles: dict[str, int]  # columns that are not features, by name
    places: list[int]  # columns of the features
    names: tuple[str, ...]  # names of the features
    texts: frozenset[int]  # features (not columns) that are strings
    views: tuple[int, ...]  # columns of string views, in a dictionary or not
    shared: tuple[int, ...]  # columns whose cells may share texts: views, dictionaries of texts
    is_matrix: bool  # all features are float64
    is_flat: bool  # no column is dictionary-encoded: a batch can be read without earlier messages


def cell_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the cells, whether dictionary-encoded or not."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_number(kind: pa.DataType) -> bool:
    """Return whether cells of this type are numbers; booleans count as 1 and 0, null as missing."""
    kind = cell_type(kind)
    return is_integer(kind) or bool(pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def is_integer(kind: pa.DataType) -> bool:
    """Return whether cells of this type are whole numbers (or all missing)."""
    kind = cell_type(kind)
    return bool(pa.types.is_integer(kind) or pa.types.is_null(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return whether cells of this type are strings."""
    kind = cell_type(kind)
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_shared(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or (pa.types.is_dictionary(kind) and is_text(kind)))


def _is_boolean(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or pa.types.is_null(kind))


def _is_identity(kind: pa.DataType) -> bool:
    return is_text(kind) or is_integer(kind)


def _is_cell(kind: pa.DataType) -> bool:
    return is_text(kind) or is_number(kind)


_FEATURE = (_is_cell, "numbers or strings")
_ROLES: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    "id": (_is_identity, "strings or whole numbers"),
    "label": (_is_cell, "class names"),
    "weight": (is_number, "numbers"),
    "declined": (_is_boolean, "booleans"),
    "annotator": (_is_identity, "strings or whole numbers"),
}


def layout(message: bytes, roles: frozenset[str]) -> ArrowLayout | Flaw:
    """Return the layout of a schema message, or the reason why blocks with this schema are refused."""
    return _kept(message, roles) if len(message) <= KEPT_BYTES else _layout(message, roles)


def _layout(message: bytes, roles: frozenset[str]) -> ArrowLayout | Flaw:
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(message))
        names = schema.names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        return Flaw(Reason.BAD_BLOCK, f"the record must be an Arrow IPC stream; its schema: {error}")
    types = schema.types
    flaw = _check(names, types, roles)
    if flaw is not None:
        return flaw
    places = [place for place, name in enumerate(names) if name not in roles]
    return ArrowLayout(
        schema=schema,
        roles={name: place for place, name in enumerate(names) if name in roles},
        places=places,
        names=tuple(names[place] for place in places),
        texts=frozenset(number for number, place in enumerate(places) if is_text(types[place])),
        views=tuple(place for place, kind in enumerate(types) if pa.types.is_string_view(cell_type(kind))),
        shared=tuple(place for place, kind in enumerate(types) if _is_shared(kind)),
        is_matrix=bool(places) and all(pa.types.is_float64(types[place]) for place in places),
        is_flat=not any(pa.types.is_dictionary(kind) for kind in types),
    )


_kept = lru_cache(maxsize=KEPT)(_layout)


def _check(names: list[str], types: list[pa.DataType], roles: frozenset[str]) -> Flaw | None:
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        return Flaw(Reason.BAD_BLOCK, f"column {quote(twice)} must not occur twice")
    if "" in names:
        return Flaw(Reason.WRONG_TYPE, "a feature must have a name; got an empty one")
    for name, kind in zip(names, types, strict=True):
        fits, wanted = _ROLES[name] if name in roles else _FEATURE
        if not fits(kind):
            return Flaw(Reason.WRONG_TYPE, f"column {quote(name)} must hold {wanted}; got {kind}")
    if roles == INSTANCE_ROLES and roles.issuperset(names):
        return Flaw(Reason.MISSING_FIELD, "the block must have at least one column of features")
    if roles == LABEL_ROLES and "id" not in names:
        return Flaw(
            Reason.MISSING_FIELD, "column 'id' is missing: the ids of the instances the labels are for"
        )
    return None
