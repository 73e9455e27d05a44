"""Schema of a model's records: attributes with their values, and classes; immutable and shared.

Equal schemas are one object (``is`` compares them, ``uid`` stands for them in arrays). A schema has no
reference to the schemas that grew from it: it lives as long as a model, a plan or a run refers to it. A
schema grows in one step for any number of new names, and the grown schema shares everything but these:

    Schema ──> Columns ──> Attribute ──> Names (core/schema/names.py): the values, and the code of each
       └─────> Names: the classes

So models that met their classes in different orders have one ``Columns``, and models that met an attribute's
values in the same order have one ``Names``.

Names that a schema *declares* and names that it has *taken in* since are counted separately. The range of
information gain, Laplace shares and branches of a test depend on the number of classes and values of a model,
and a batch must not add a class before its first record was learned. So kernels start from the declared
count, and raise it when a model learns a new name.
"""

from __future__ import annotations

import itertools
import json
import operator
import threading
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.errors import SchemaError, TooManyClassesError
from core.json_text import read_json
from core.schema import shared
from core.schema.columns import Attribute, Columns, Kind
from core.schema.names import PER_NAME, Names, text_bytes

__all__ = ["MAX_VALUES", "MAX_VALUE_BYTES", "Attribute", "Columns", "Kind", "Schema"]

MAX_VALUES: Final = 1024
"""Most values that an open nominal attribute takes in; later values stay unknown (code -1)."""

MAX_VALUE_BYTES: Final = 4 << 20
"""Most bytes of values that a schema takes in, over all its attributes; values beyond stay unknown."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Schema:
    """Attributes and classes; make one with ``Schema.of`` or ``Schema.infer`` and compare with ``is``."""

    columns: Columns
    class_names: Names
    max_classes: int
    """The largest number of classes that the schema may hold."""
    classes_open: bool
    """Whether new classes are taken in."""
    declared_classes: int
    """Number of classes that the schema had when it was made."""
    uid: int

    _bytes: ClassVar[int] = shared.INTERNED
    _making: ClassVar[threading.RLock] = threading.RLock()
    _tally: ClassVar[shared.Tally] = shared.TALLY
    _known: ClassVar[weakref.WeakValueDictionary[tuple[Any, ...], Schema]] = weakref.WeakValueDictionary()
    _uids: ClassVar[itertools.count[int]] = itertools.count()

    # Construction

    @classmethod
    def of(
        cls,
        attributes: Sequence[Attribute],
        classes: Sequence[str] = (),
        *,
        max_classes: int = 64,
        open_attributes: bool = False,
        classes_open: bool | None = None,
    ) -> Schema:
        """Return the schema that declares these attributes and classes.

        ``classes_open`` (default: only if no class is declared) allows new classes, up to ``max_classes``;
        ``open_attributes`` allows new features until the first split.
        """
        columns = Columns.of(tuple(attributes), tuple(len(a.values) for a in attributes), open_attributes)
        names = _classes(classes)
        is_open = not names.texts if classes_open is None else classes_open
        return cls._of(columns, names, max_classes, is_open, len(names))

    @classmethod
    def infer(cls, names: Sequence[str], kinds: Sequence[Kind], *, max_classes: int = 64) -> Schema:
        """Return the schema of a first record: its nominal attributes, classes and features are open."""
        attributes = [
            Attribute(name, kind, open=kind == "nominal") for name, kind in zip(names, kinds, strict=True)
        ]
        return cls.of(attributes, max_classes=max_classes, open_attributes=True)

    @classmethod
    def _of(
        cls, columns: Columns, names: Names, max_classes: int, classes_open: bool, declared: int
    ) -> Schema:
        key = (columns, names, max_classes, classes_open, declared)
        schema = cls._known.get(key)
        if schema is None:
            _check_classes(names.texts, max_classes, classes_open, declared)
            with cls._making:  # a partition may be restored in another thread
                schema = cls._known.get(key)
                if schema is None:
                    schema = cls._known[key] = cls(*key, next(cls._uids))
        return schema

    def __post_init__(self) -> None:
        """Add the size of the schema without its columns and classes to the tally."""
        self._tally.hold(self._bytes)

    def __del__(self) -> None:
        """Subtract the size from the tally: the last model that used the schema is freed."""
        self._tally.give_up(self._bytes)

    # Access

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes in column order."""
        return self.columns.attributes

    @property
    def classes(self) -> tuple[str, ...]:
        """The class labels in code order."""
        return self.class_names.texts

    @property
    def open_attributes(self) -> bool:
        """Whether new features are taken in until the first split."""
        return self.columns.open

    @property
    def declared_values(self) -> tuple[int, ...]:
        """How many values each attribute had when the schema was made."""
        return self.columns.declared_values

    @property
    def content_bytes(self) -> int:
        """Bytes of the schema's names, as if no other model shared them; the same on every machine."""
        return self.columns.content_bytes + self.class_names.content_bytes

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names in column order."""
        return self.columns.names

    @property
    def n_attributes(self) -> int:
        return len(self.attributes)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def class_code(self, label: str) -> int:
        """Return the code of a class label, -1 if unknown."""
        return self.class_names.code(label)

    def value_code(self, attribute: int, value: str) -> int:
        """Return the code of a value of a nominal attribute, -1 if unknown."""
        return self.columns.value_code(attribute, value)

    # Growth

    def with_class(self, label: str) -> Schema:
        if self.class_code(label) >= 0:
            return self
        if not self.classes_open:
            msg = f"class={label!r} must be one of {', '.join(self.classes)}: the schema's classes are closed"
            raise SchemaError(msg)
        if self.n_classes >= self.max_classes:
            msg = (
                f"class={label!r} must be one of the {self.n_classes} classes known: max_classes="
                f"{self.max_classes} has no room for more; create the model again with a larger max_classes "
                "in its spec (boct, criterion km, and gini in theory, are for 2 classes: take h-tree, or "
                "another criterion), or leave it out"
            )
            raise TooManyClassesError(msg)
        return self._with(names=self.class_names.with_more((label,)))

    def with_values(self, values: Iterable[tuple[int, str]]) -> Schema:
        """Return the schema with values of open attributes added, in one step.

        values: attribute and value, in the order they came; known values are skipped. Values beyond
        MAX_VALUES of an attribute or MAX_VALUE_BYTES of the schema stay unknown.
        """
        size = self.columns.value_bytes
        new: dict[int, dict[str, None]] = {}
        for attribute, value in values:
            old = self.attributes[attribute]
            new_values = new.get(attribute, {})
            if value in new_values or old.codes.code(value) >= 0:
                continue
            if not old.open:
                msg = f"{old.name}={value!r} must be a declared value: the attribute is not open"
                raise SchemaError(msg)
            bytes_of = text_bytes(value) + PER_NAME
            if len(old.values) + len(new_values) < MAX_VALUES and size + bytes_of <= MAX_VALUE_BYTES:
                new.setdefault(attribute, new_values)[value] = None
                size += bytes_of
        return self._with(columns=self.columns.with_values(new)) if new else self

    def with_attributes(self, attributes: Sequence[Attribute]) -> Schema:
        """Return the schema with more attributes, at the end."""
        if not self.open_attributes:
            name = attributes[0].name
            msg = f"attribute {name!r} must be declared: the schema takes in no new features"
            raise SchemaError(msg)
        return self._with(columns=self.columns.with_attributes(attributes))

    def _with(self, columns: Columns | None = None, names: Names | None = None) -> Schema:
        return self._of(
            self.columns if columns is None else columns,
            self.class_names if names is None else names,
            self.max_classes,
            self.classes_open,
            self.declared_classes,
        )

    def extends(self, other: Schema) -> bool:
        """Return whether this schema can have grown from ``other``: all its codes mean the same here."""
        mine, theirs = self, other
        return (
            mine.classes[: len(theirs.classes)] == theirs.classes
            and mine.declared_classes == theirs.declared_classes
            and mine.declared_values[: len(theirs.declared_values)] == theirs.declared_values
            and len(mine.attributes) >= len(theirs.attributes)
            and (
                all(map(operator.is_, mine.attributes, theirs.attributes))
                or all(
                    (new.name, new.kind, new.range, new.cost, new.thresholds)
                    == (old.name, old.kind, old.range, old.cost, old.thresholds)
                    and new.values[: len(old.values)] == old.values
                    for new, old in zip(mine.attributes, theirs.attributes, strict=False)
                )
            )
        )

    # Serialization

    def to_json(self) -> str:
        body: dict[str, Any] = {
            "attributes": [_attribute_to_dict(a) for a in self.attributes],
            "classes": list(self.classes),
            "max_classes": self.max_classes,
            "open_attributes": self.open_attributes,
            "classes_open": self.classes_open,
            "declared_classes": self.declared_classes,
            "declared_values": list(self.declared_values),
        }
        return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Schema:
        """Return the schema that ``to_json`` wrote; only ``attributes`` is necessary."""
        try:
            body = read_json(text)
            attributes = tuple(_attribute_from_dict(a) for a in body["attributes"])
            classes = tuple(str(c) for c in body.get("classes", ()))
            declared = tuple(map(int, body.get("declared_values", [len(a.values) for a in attributes])))
            is_open = bool(body.get("open_attributes", False))
            rest = (
                int(body.get("max_classes", 64)),
                bool(body.get("classes_open", not classes)),
                int(body.get("declared_classes", len(classes))),
            )
            names = [classes, *((a.name, a.kind, *a.values) for a in attributes)]
            "".join(map("".join, names)).encode()  # half a surrogate pair: JSON can contain it, UTF-8 cannot
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            msg = f"schema must be an object with 'attributes' (name, kind, values) and 'classes': {error!r}"
            raise SchemaError(msg) from error
        return cls._of(Columns.of(attributes, declared, is_open), _classes(classes), *rest)

    def __repr__(self) -> str:
        """Return the schema's size, not its content."""
        return f"Schema(uid={self.uid}, attributes={self.n_attributes}, classes={self.n_classes})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as JSON, so that unpickling in this process gives the same object."""
        return Schema.from_json, (self.to_json(),)


def _classes(names: Sequence[str]) -> Names:
    try:
        return Names.of(names)
    except ValueError as error:
        msg = f"classes must differ from each other: {error}"
        raise SchemaError(msg) from None


def _check_classes(classes: Sequence[str], max_classes: int, is_open: bool, declared: int) -> None:
    if not 1 <= max_classes <= 32767:
        msg = f"max_classes={max_classes} must be from 1 to 32767"
        raise SchemaError(msg)
    if len(classes) > max_classes:
        msg = f"classes must be at most max_classes={max_classes}, not {len(classes)}"
        raise TooManyClassesError(msg)
    if not classes and not is_open:
        msg = "classes=() must hold at least one class, or be open"
        raise SchemaError(msg)
    if not 0 <= declared <= len(classes):
        msg = f"declared_classes={declared} must be from 0 to {len(classes)}"
        raise SchemaError(msg)


def _attribute_to_dict(attribute: Attribute) -> dict[str, Any]:
    body: dict[str, Any] = {"name": attribute.name, "kind": attribute.kind}
    if attribute.kind == "nominal":
        body |= {"values": list(attribute.values), "open": attribute.open}
    if attribute.range is not None:
        body["range"] = list(attribute.range)
    if attribute.cost != 1.0:
        body["cost"] = attribute.cost
    if attribute.thresholds:
        body["thresholds"] = list(attribute.thresholds)
    return body


def _attribute_from_dict(body: dict[str, Any]) -> Attribute:
    return Attribute(
        str(body["name"]),
        body.get("kind", "numeric"),
        tuple(str(v) for v in body.get("values", ())),
        bool(body.get("open", False)),
        _range(body.get("range")),
        float(body.get("cost", 1.0)),
        tuple(map(float, body.get("thresholds", ()))),
    )


def _range(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    low, high = map(float, bounds)
    return low, high
