"""Control schema: the schema in a control, accepted unchanged or refused.

    {"attributes": [{"name": "amount", "range": [0, 5000]},
                    {"name": "country", "kind": "nominal", "values": ["FR"]}],
     "classes": ["legitimate", "fraud"], "max_classes": 8, "open_attributes": false, "classes_open": false}

Class names are formed as for labels (docs/records.md): `1` is the class `1`, `true` the class `true`.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn

from core.errors import SchemaError, TooManyClassesError
from core.plugin import check
from core.schema.names import PER_NAME
from core.schema.schema import MAX_VALUE_BYTES, Attribute, Schema
from topics.codecs.cells import class_name
from topics.codecs.flaws import Flaw
from topics.codecs.lengths import class_flaw, too_long
from topics.codecs.limits import Limits

MEMBERS: Final = ("attributes", "classes", "max_classes", "open_attributes", "classes_open")
OF_ATTRIBUTE: Final = ("name", "kind", "values", "open", "range", "cost", "thresholds")
MAX_SHOWN: Final = 80
"""Characters of a refused value that are shown."""


def control_schema(declared: Any, max_classes: int, max_attributes: int, limits: Limits) -> Schema:
    """Return the schema in a control; `max_classes`: if the control does not set it.

    max_attributes, limits: bounds of any schema. Raises SchemaError or ParameterError, which name the member
    and the values it may have.
    """
    if not isinstance(declared, dict):
        _refuse(
            "schema", declared, "an object with 'attributes'; leave it out to let the first instance give it"
        )
    _known("a schema", declared, MEMBERS)
    attributes = declared.get("attributes")
    if not isinstance(attributes, list):
        _refuse("attributes", attributes, 'an array; write [{"name": "x"}, …], one object for each feature')
    if len(attributes) > max_attributes:
        message = f"attributes={len(attributes):,} must be at most models.max.attributes={max_attributes:,}"
        raise SchemaError(message)
    max_classes = check(
        "max_classes", declared.get("max_classes", max_classes), {"type": int, "rules": {"at least": 1}}
    )
    _check_counts(attributes, declared.get("classes"), max_classes)
    parsed = [_attribute(attribute) for attribute in attributes]
    classes = _classes(declared.get("classes", []))
    _check_lengths(parsed, classes, limits)
    return Schema.of(
        parsed,
        classes,
        max_classes=max_classes,
        open_attributes=_switch("open_attributes", declared, default=False),
        classes_open=_switch("classes_open", declared, default=not declared.get("classes")),
    )


def _check_counts(attributes: list[Any], classes: Any, max_classes: int) -> None:
    """Refuse counts that are too large before any item is looked at: there may be a million."""
    lists = [attribute.get("values") for attribute in attributes if isinstance(attribute, dict)]
    values = sum(len(listed) for listed in lists if isinstance(listed, list))
    if values * PER_NAME > MAX_VALUE_BYTES:
        message = (
            f"{values:,} values take at least {values * PER_NAME:,} bytes and must have at most "
            f"{MAX_VALUE_BYTES:,}; declare fewer"
        )
        raise SchemaError(message)
    if isinstance(classes, list) and len(classes) > max_classes:
        message = f"classes must be at most max_classes={max_classes}, not {len(classes)}"
        raise TooManyClassesError(message)


def _check_lengths(attributes: list[Attribute], classes: list[str], limits: Limits) -> None:
    values = [value for attribute in attributes for value in attribute.values]
    for what, texts in (
        ("the name of a feature", [attribute.name for attribute in attributes]),
        ("a nominal value", values),
    ):
        for text in texts:
            _raise(too_long(what, text, limits.text_max_bytes))
    for name in classes:
        _raise(class_flaw(name, limits))
    size = sum(attribute.codes.content_bytes for attribute in attributes)
    if size > MAX_VALUE_BYTES:
        message = f"values of {size:,} bytes must have at most {MAX_VALUE_BYTES:,}; declare fewer"
        raise SchemaError(message)


def _raise(flaw: Flaw | None) -> None:
    if flaw is not None:
        raise SchemaError(flaw.detail)


def _attribute(declared: Any) -> Attribute:
    if not isinstance(declared, dict):
        _refuse("attributes", declared, 'made of objects; write {"name": "x"}')
    _known("an attribute", declared, OF_ATTRIBUTE)
    name, kind = declared.get("name"), declared.get("kind", "numeric")
    if not isinstance(name, str) or not name:
        _refuse("name", name, "a string that is not empty; write the feature's name as its instances do")
    if kind not in ("numeric", "nominal"):
        _refuse("kind", kind, f"'numeric' or 'nominal'; choose one for attribute {name!r}")
    values = declared.get("values", [])
    if not isinstance(values, list):
        _refuse("values", values, f"an array of strings; list the values of attribute {name!r}")
    for value in values:
        if not isinstance(value, str):
            _refuse("values", value, f"strings; quote the values of the nominal attribute {name!r}")
    is_open = _switch("open", declared, default=False)
    if is_open and kind == "numeric":
        _refuse(
            "open",
            True,
            f"false for the numeric attribute {name!r}; make its kind 'nominal', or leave it out",
        )
    return Attribute(
        name,
        kind,
        tuple(values),
        is_open,
        _range(name, declared.get("range")),
        _cost(name, declared.get("cost", 1.0)),
        _thresholds(name, declared.get("thresholds", [])),
    )


def _cost(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not 0.0 < value < math.inf:
        _refuse("cost", value, f"a number above 0 for attribute {name!r}; or leave it out, it is 1 then")
    return float(value)


def _thresholds(name: str, value: Any) -> tuple[float, ...]:
    numbers = [number for number in value if type(number) in (int, float)] if isinstance(value, list) else [0]
    if not isinstance(value, list) or len(numbers) != len(value) or numbers != sorted(set(numbers)):
        _refuse("thresholds", value, f"numbers in ascending order for attribute {name!r}; or leave them out")
    return tuple(map(float, numbers))


def _range(name: str, value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    numbers = [number for number in value if type(number) in (int, float)] if isinstance(value, list) else []
    if len(numbers) != 2 or len(value) != 2 or not numbers[0] < numbers[1]:
        _refuse("range", value, f"two numbers, the lower first, for attribute {name!r}; or leave it out")
    return float(numbers[0]), float(numbers[1])


def _classes(value: Any) -> list[str]:
    if not isinstance(value, list):
        _refuse("classes", value, "an array of class names; leave it out to learn them from the labels")
    names: list[str] = []
    for class_value in value:
        name = class_name(class_value)
        if name is None:
            _refuse(
                "classes",
                class_value,
                "strings that are not empty, whole numbers, true or false; name the class",
            )
        names.append(name)
    return names


def _switch(name: str, declared: dict[str, Any], *, default: bool) -> bool:
    value = declared.get(name, default)
    if not isinstance(value, bool):
        _refuse(name, value, "true or false; write it without quotes, or leave it out")
    return value


def _known(owner: str, declared: dict[str, Any], members: tuple[str, ...]) -> None:
    for name, value in declared.items():
        if name not in members:
            message = f"{name}={_shown(value)} is no member of {owner}; known: {', '.join(members)}"
            raise SchemaError(message)


def _refuse(name: str, value: Any, rule: str) -> NoReturn:
    message = f"{name}={_shown(value)} must be {rule}"
    raise SchemaError(message)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
