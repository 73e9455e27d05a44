"""Schema of a model's records: attributes with their values, and classes; immutable and shared.

Equal schemas are one object (``is`` compares them, ``uid`` stands for them in arrays), and the ways from a
schema to its next (one class, one value, one attribute more) are remembered, so that ten thousand models
that grow alike share a handful of objects.

What a schema *declares* and what it has *taken in* since are kept apart: the range of information gain,
Laplace shares and branches of a test depend on the number of classes and values a model knows, and a batch
must not make a class known before its first record was learned. So kernels count from what is declared, and
raise that count when a model learns something new.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from core.errors import SchemaError, TooManyClassesError

MAX_VALUES = 1024
"""Values that an open nominal attribute takes in; later ones stay unknown (code -1)."""

Kind = Literal["numeric", "nominal"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column: ``numeric``, or ``nominal`` with its values in code order; ``open`` takes in new values.

    ``range`` says between which values those of a numeric one lie, as far as one knows: an observer may cut
    it evenly (core/observers/histogram.py). Nobody is held to it.
    """

    name: str
    kind: Kind = "numeric"
    values: tuple[str, ...] = ()
    open: bool = False
    range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Refuse contradictions."""
        if self.kind not in ("numeric", "nominal"):
            msg = f"kind={self.kind!r} of attribute {self.name!r} must be 'numeric' or 'nominal'"
            raise SchemaError(msg)
        if self.kind == "numeric" and (self.values or self.open):
            msg = f"values={self.values!r} of the numeric attribute {self.name!r} must be empty"
            raise SchemaError(msg)
        if self.range is not None:
            low, high = self.range
            if self.kind != "numeric" or not -math.inf < low < high < math.inf:
                msg = (
                    f"range={self.range!r} of attribute {self.name!r} must be two finite numbers, the first "
                    "below the second, of a numeric attribute"
                )
                raise SchemaError(msg)
        if len(set(self.values)) != len(self.values):
            msg = f"values={self.values!r} of attribute {self.name!r} must differ from each other"
            raise SchemaError(msg)


@dataclass(frozen=True, slots=True)
class _Content:
    """What makes two schemas equal."""

    attributes: tuple[Attribute, ...]
    classes: tuple[str, ...]
    max_classes: int
    open_attributes: bool
    classes_open: bool
    declared_classes: int
    declared_values: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Schema:
    """Attributes and classes; make one with ``Schema.of`` or ``Schema.infer`` and compare with ``is``."""

    _content: _Content
    uid: int
    _class_codes: dict[str, int] = field(init=False)
    _value_codes: tuple[dict[str, int], ...] = field(init=False)
    _next: dict[tuple[Any, ...], Schema] = field(init=False, default_factory=dict)

    _interning: ClassVar[threading.Lock] = threading.Lock()
    _known: ClassVar[weakref.WeakValueDictionary[_Content, Schema]] = weakref.WeakValueDictionary()
    _uids: ClassVar[itertools.count[int]] = itertools.count()

    def __post_init__(self) -> None:
        """Index classes and values."""
        object.__setattr__(self, "_class_codes", {c: i for i, c in enumerate(self.classes)})
        codes = tuple({v: i for i, v in enumerate(a.values)} for a in self.attributes)
        object.__setattr__(self, "_value_codes", codes)

    # Making

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

        ``classes_open`` (default: only if no class is declared) lets new classes in, up to ``max_classes``;
        ``open_attributes`` lets new features in until the first split.
        """
        given = tuple(classes)
        return cls._of(
            _Content(
                attributes=tuple(attributes),
                classes=given,
                max_classes=max_classes,
                open_attributes=open_attributes,
                classes_open=not given if classes_open is None else classes_open,
                declared_classes=len(given),
                declared_values=tuple(len(a.values) for a in attributes),
            )
        )

    @classmethod
    def infer(cls, names: Sequence[str], kinds: Sequence[Kind], *, max_classes: int = 64) -> Schema:
        """Return the schema of a first record: its nominal attributes, classes and features are open."""
        attributes = [
            Attribute(name, kind, open=kind == "nominal") for name, kind in zip(names, kinds, strict=True)
        ]
        return cls.of(attributes, max_classes=max_classes, open_attributes=True)

    @classmethod
    def _of(cls, content: _Content) -> Schema:
        found = cls._known.get(content)
        if found is None:
            _check(content)
            with cls._interning:  # a partition may be restored in a thread of its own
                found = cls._known.get(content)
                if found is None:
                    found = cls._known[content] = cls(content, next(cls._uids))
        return found

    # Reading

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes in column order."""
        return self._content.attributes

    @property
    def classes(self) -> tuple[str, ...]:
        """The class labels in code order."""
        return self._content.classes

    @property
    def max_classes(self) -> int:
        """How many classes the schema may come to hold."""
        return self._content.max_classes

    @property
    def open_attributes(self) -> bool:
        """Whether new features are taken in until the first split."""
        return self._content.open_attributes

    @property
    def classes_open(self) -> bool:
        """Whether new classes are taken in."""
        return self._content.classes_open

    @property
    def declared_classes(self) -> int:
        """How many of the classes the schema began with."""
        return self._content.declared_classes

    @property
    def declared_values(self) -> tuple[int, ...]:
        """How many of each attribute's values the schema began with."""
        return self._content.declared_values

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names in column order."""
        return tuple(a.name for a in self.attributes)

    @property
    def n_attributes(self) -> int:
        """The number of attributes."""
        return len(self.attributes)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.classes)

    def class_code(self, label: str) -> int:
        """Return the code of a class label, -1 if unknown."""
        return self._class_codes.get(label, -1)

    def value_code(self, attribute: int, value: str) -> int:
        """Return the code of a value of a nominal attribute, -1 if unknown."""
        return self._value_codes[attribute].get(value, -1)

    # Growing

    def with_class(self, label: str) -> Schema:
        """Return the schema that also knows a class."""
        if label in self._class_codes:
            return self
        if not self.classes_open:
            msg = f"class={label!r} must be one of {', '.join(self.classes)}: the schema's classes are closed"
            raise SchemaError(msg)
        if self.n_classes >= self.max_classes:
            msg = (
                f"class={label!r} must be one of the {self.n_classes} classes known: max_classes="
                f"{self.max_classes} lets in no more; create the model anew with a larger max_classes in its "
                "spec (criterion km, and gini in theory, are for 2 classes: take another), or leave it out"
            )
            raise TooManyClassesError(msg)
        return self._step(("class", label), classes=(*self.classes, label))

    def with_value(self, attribute: int, value: str) -> Schema:
        """Return the schema that also knows a value of an open attribute (itself once MAX_VALUES are)."""
        old = self.attributes[attribute]
        if value in self._value_codes[attribute]:
            return self
        if not old.open:
            msg = f"{old.name}={value!r} must be a declared value: the attribute is not open"
            raise SchemaError(msg)
        if len(old.values) >= MAX_VALUES:
            return self
        new = Attribute(old.name, old.kind, (*old.values, value), old.open)
        attributes = (*self.attributes[:attribute], new, *self.attributes[attribute + 1 :])
        return self._step(("value", attribute, value), attributes=attributes)

    def with_attribute(self, attribute: Attribute) -> Schema:
        """Return the schema with one attribute more, at the end."""
        if not self.open_attributes:
            msg = f"attribute {attribute.name!r} must be declared: the schema takes in no new features"
            raise SchemaError(msg)
        return self._step(
            ("attribute", attribute),
            attributes=(*self.attributes, attribute),
            declared_values=(*self.declared_values, len(attribute.values)),
        )

    def _step(self, step: tuple[Any, ...], **changes: Any) -> Schema:
        found = self._next.get(step)
        if found is None:
            old = {name: getattr(self._content, name) for name in _Content.__slots__}
            found = self._next[step] = self._of(_Content(**(old | changes)))
        return found

    def extends(self, other: Schema) -> bool:
        """Return whether this schema is another one grown: every code of that one means the same here."""
        mine, theirs = self._content, other._content
        return (
            mine.classes[: len(theirs.classes)] == theirs.classes
            and mine.declared_classes == theirs.declared_classes
            and mine.declared_values[: len(theirs.declared_values)] == theirs.declared_values
            and len(mine.attributes) >= len(theirs.attributes)
            and all(
                (new.name, new.kind, new.range) == (old.name, old.kind, old.range)
                and new.values[: len(old.values)] == old.values
                for new, old in zip(mine.attributes, theirs.attributes, strict=False)
            )
        )

    # Writing

    def to_json(self) -> str:
        """Return the schema as canonical JSON."""
        content = self._content
        body: dict[str, Any] = {
            "attributes": [_attribute_to_dict(a) for a in content.attributes],
            "classes": list(content.classes),
            "max_classes": content.max_classes,
            "open_attributes": content.open_attributes,
            "classes_open": content.classes_open,
            "declared_classes": content.declared_classes,
            "declared_values": list(content.declared_values),
        }
        return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Schema:
        """Return the schema that ``to_json`` wrote; only ``attributes`` is necessary."""
        try:
            body = json.loads(text)
            attributes = tuple(_attribute_from_dict(a) for a in body["attributes"])
            classes = tuple(str(c) for c in body.get("classes", ()))
            content = _Content(
                attributes=attributes,
                classes=classes,
                max_classes=int(body.get("max_classes", 64)),
                open_attributes=bool(body.get("open_attributes", False)),
                classes_open=bool(body.get("classes_open", not classes)),
                declared_classes=int(body.get("declared_classes", len(classes))),
                declared_values=tuple(
                    map(int, body.get("declared_values", [len(a.values) for a in attributes]))
                ),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            msg = f"schema must be an object with 'attributes' (name, kind, values) and 'classes': {error!r}"
            raise SchemaError(msg) from error
        return cls._of(content)

    def __repr__(self) -> str:
        """Return the schema's size, not its content."""
        return f"Schema(uid={self.uid}, attributes={self.n_attributes}, classes={self.n_classes})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as JSON, so that the copy is this object again."""
        return Schema.from_json, (self.to_json(),)


def _check(content: _Content) -> None:
    """Refuse what no model could learn from."""
    names = [a.name for a in content.attributes]
    if not names:
        msg = "attributes=() must hold at least one attribute"
        raise SchemaError(msg)
    if len(set(names)) != len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        msg = f"attributes={', '.join(twice)} must have names that differ from each other"
        raise SchemaError(msg)
    if len(set(content.classes)) != len(content.classes):
        msg = f"classes={content.classes!r} must differ from each other"
        raise SchemaError(msg)
    if not 1 <= content.max_classes <= 32767:
        msg = f"max_classes={content.max_classes} must be from 1 to 32767"
        raise SchemaError(msg)
    if len(content.classes) > content.max_classes:
        msg = f"classes must be at most max_classes={content.max_classes}, not {len(content.classes)}"
        raise TooManyClassesError(msg)
    if not content.classes and not content.classes_open:
        msg = "classes=() must hold at least one class, or be open"
        raise SchemaError(msg)
    if not 0 <= content.declared_classes <= len(content.classes):
        msg = f"declared_classes={content.declared_classes} must be from 0 to {len(content.classes)}"
        raise SchemaError(msg)
    sizes = [len(a.values) for a in content.attributes]
    if len(content.declared_values) != len(sizes) or any(
        not 0 <= d <= n for d, n in zip(content.declared_values, sizes, strict=False)
    ):
        msg = f"declared_values={content.declared_values} must be one count per attribute, at most {sizes}"
        raise SchemaError(msg)


def _attribute_to_dict(attribute: Attribute) -> dict[str, Any]:
    body: dict[str, Any] = {"name": attribute.name, "kind": attribute.kind}
    if attribute.kind == "nominal":
        body |= {"values": list(attribute.values), "open": attribute.open}
    if attribute.range is not None:
        body["range"] = list(attribute.range)
    return body


def _attribute_from_dict(body: dict[str, Any]) -> Attribute:
    return _attribute(
        str(body["name"]),
        body.get("kind", "numeric"),
        tuple(str(v) for v in body.get("values", ())),
        bool(body.get("open", False)),
        _range(body.get("range")),
    )


def _range(given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
    low, high = map(float, given)
    return low, high


@functools.lru_cache(maxsize=4096)
def _attribute(
    name: str, kind: Kind, values: tuple[str, ...], is_open: bool, limits: tuple[float, float] | None
) -> Attribute:
    return Attribute(name, kind, values, is_open, limits)
