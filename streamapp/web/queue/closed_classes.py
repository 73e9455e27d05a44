"""Closed classes: the classes that a model's schema allows, as far as the controls of its key show.

The worker carries out controls in their order, and so does `after`. A model that was made by its first
instance, or whose schema is open, takes any class.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from topics.codecs.cells import class_name
from topics.columns.records import Control

SHOWN: Final = 20
"""Classes that the text of a refusal lists."""
_MEMBERS: Final = {"attributes", "classes", "max_classes", "open_attributes", "classes_open"}
_HEAD: Final = struct.Struct("<8sIIQ")  # of a model file: magic, version, bytes of head and body
_MAGIC: Final = b"grovetrv"


class Incoming(NamedTuple):
    """A model file of which some parts have come."""

    id: str
    part: int  # number of the next part
    classes: tuple[str, ...] | None


class Declared(NamedTuple):
    """The classes that the controls of a key allow; `classes` None: any."""

    is_there: bool
    classes: tuple[str, ...] | None
    since_ms: int
    incoming: Incoming | None = None


@dataclass(frozen=True, slots=True)
class ClassControl:
    """The part of a control that decides which classes a model allows."""

    key: str
    command: str
    at_ms: int
    has_schema: bool = False
    classes: tuple[str, ...] | None = None  # the classes of a closed schema; None: any class is allowed
    replaces: bool = False
    id: str = ""  # id of an import
    part: int = 0
    parts: int = 0


NOTHING: Final = Declared(False, None, 0)


def class_control(control: Control, at_ms: int) -> ClassControl | None:
    """Return the effect of a control on classes; None: it has none, or the worker refuses it.

    >>> body = {"schema": {"attributes": [{"name": "x"}], "classes": ["a", True]}}
    >>> class_control(Control(0, "k", "create", body), 9).classes
    ('a', 'true')
    """
    body, about = control.body, (control.key, control.command, at_ms)
    if control.command == "import":
        part, parts = body.get("part"), body.get("parts")
        if type(part) is not int or type(parts) is not int:
            return None
        classes = _in_file(body.get("data")) if part == 1 else None
        replaces, name = body.get("replace") is True, str(body.get("id"))
        return ClassControl(*about, True, classes, replaces, name, part, parts)
    if control.command not in ("create", "reset", "delete"):
        return None
    if "schema" not in body:
        return ClassControl(*about)
    schema = body["schema"]
    return ClassControl(*about, True, _closed(schema)) if _is_sound(schema) else None


def after(declared: Declared, control: ClassControl) -> Declared:
    """Return the declaration after a control.

    >>> closed = after(NOTHING, ClassControl("k", "create", 5, True, ("a", "b")))
    >>> after(closed, ClassControl("k", "create", 6, True, None)) == closed  # it exists: refused
    True
    """
    if control.command == "delete":
        return NOTHING
    if control.command == "import":
        return _after_part(declared, control)
    if control.command == "create" and declared.is_there:
        return declared
    if control.command == "reset" and not control.has_schema:
        return declared
    return Declared(True, control.classes, control.at_ms)


def _after_part(declared: Declared, control: ClassControl) -> Declared:
    """Return the declaration after a part of a model file; the last part puts the model in effect."""
    came = declared.incoming
    if came is not None and came.id == control.id and control.part < came.part:
        return declared  # the part came twice: the first one is kept
    if control.part == 1:
        came = Incoming(control.id, 1, control.classes)
    if came is None or (came.id, came.part) != (control.id, control.part):
        return declared._replace(incoming=None)
    if declared.is_there and not control.replaces:
        return declared._replace(incoming=None)
    if control.part < control.parts:
        return declared._replace(incoming=came._replace(part=control.part + 1))
    return Declared(True, came.classes, control.at_ms)


def lets_in(declared: Declared, named: Iterable[tuple[str, int]]) -> tuple[str, ...] | None:
    """Return the classes that a model allows, None: any.

    named: classes that the model itself has answered, each with its newest time. If one of them is newer
    than the control and is not declared, the control was refused or a later change replaced it.
    """
    if declared.classes is None:
        return None
    allowed = set(declared.classes)
    if any(name not in allowed and at_ms > declared.since_ms for name, at_ms in named):
        return None
    return declared.classes


def refusal(label: str, classes: tuple[str, ...]) -> str:
    listed = ", ".join(classes[:SHOWN]) + (", …" if len(classes) > SHOWN else "")
    return f"{label[:80]!r} must be one of {listed}: the schema of this model closes its classes."


def written(declared: Declared) -> str:
    """Return a declaration as text."""
    came = declared.incoming
    return orjson.dumps([*declared[:3], None if came is None else list(came)]).decode()


def read_declared(text: str) -> Declared:
    """Return the declaration that `written` wrote."""
    is_there, classes, since_ms, incoming = orjson.loads(text)
    return Declared(is_there, _names(classes), since_ms, incoming and _incoming(*incoming))


def _incoming(name: str, part: int, classes: list[str] | None) -> Incoming:
    return Incoming(name, part, _names(classes))


def _names(classes: list[str] | None) -> tuple[str, ...] | None:
    return None if classes is None else tuple(classes)


def _is_sound(schema: Any) -> bool:
    """Return whether the worker would accept a schema, as far as its classes show."""
    if not isinstance(schema, dict) or not schema.keys() <= _MEMBERS:
        return False
    attributes, classes = schema.get("attributes"), schema.get("classes", [])
    if not isinstance(attributes, list) or not attributes or not isinstance(classes, list):
        return False
    names = [class_name(declared) for declared in classes]
    has_names = None not in names and len(set(names)) == len(names)
    return has_names and type(schema.get("classes_open", False)) is bool


def _closed(schema: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the classes of a closed schema; None: the schema takes further classes."""
    names = [name for declared in schema.get("classes") or () if (name := class_name(declared)) is not None]
    return None if schema.get("classes_open", not names) else tuple(names)


def _in_file(data: Any) -> tuple[str, ...] | None:
    """Return the closed classes in the first part of a model file (docs/portable-models.md: format 1)."""
    try:
        decoded = base64.b64decode(data, validate=True) if isinstance(data, str) else b""
        magic, _, size, _ = _HEAD.unpack_from(decoded)
        head = orjson.loads(decoded[_HEAD.size : _HEAD.size + size])
    except (binascii.Error, ValueError, struct.error):
        return None
    schema = head.get("schema") if isinstance(head, dict) and magic == _MAGIC else None
    if not isinstance(schema, dict) or not isinstance(schema.get("classes"), list):
        return None
    return _closed(schema)
