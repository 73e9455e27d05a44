"""Specs of `grove pool`: specs of models, BOCT with the sizes of a pool, and the batch tree C4.5."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from core.batch.c45 import C45
from core.errors import GroveError, SpecError
from core.json_text import read_json
from core.layout.model import Floats
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.errors import UsageError
from streamapp.lab.pool.batch_tree import BatchSystem
from streamapp.lab.pool.pool_models import AT_RANDOM, ModelSystem, check_spec
from streamapp.lab.pool.pool_protocol import System

BATCH_NAMES: Final = ("c4.5", "c45")

Maker = Callable[[Schema, Floats], System]
"""Makes the system for the rows of a pool (float64[n, d])."""


def maker_of(text: str) -> Maker:
    """Return the maker of the system for a learner's name, JSON text, or `@FILE`.

    Raises UsageError or SpecError if the text is no spec, or has no meaning in a pool.
    """
    body = _body(_text(text))
    learner = body.get("learner", {})
    named = {"name": learner} if isinstance(learner, str) else learner
    if isinstance(named, dict) and named.get("name") in BATCH_NAMES:
        return _batch(body, named)
    if isinstance(named, dict) and named.get("name") == "boct":
        body = body | {"learner": {"sizes": "pool"} | named}
    spec = Spec.parse(body)
    check_spec(spec)
    return lambda schema, x: ModelSystem(spec, schema, x)


def _text(text: str) -> str:
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"--spec {text}: cannot read the file ({reason}); correct the name after @"
        raise UsageError(message) from None


def _body(text: str) -> dict[str, Any]:
    if not text.lstrip().startswith("{"):
        return {"learner": text.strip()}
    try:
        body: dict[str, Any] = read_json(text)
    except ValueError as error:
        message = f"spec={text[:80]!r} must be a JSON object or the name of a learner: {error}"
        raise SpecError(message) from error
    return body


def _batch(body: dict[str, Any], learner: dict[str, Any]) -> Maker:
    if useless := sorted(body.keys() - {"learner", "query", "seed"}):
        message = f"{', '.join(useless)} must be left out with learner 'c4.5': a batch tree has no such part"
        raise UsageError(message)
    query = body.get("query", "random")
    name = query.get("name") if isinstance(query, dict) else query
    if name not in AT_RANDOM:
        message = f"query={name!r} must be one of {', '.join(AT_RANDOM)} with learner 'c4.5'"
        raise UsageError(message)
    parameters = {key: value for key, value in learner.items() if key != "name"}
    defaults = {field.name: field.default for field in dataclasses.fields(C45)}
    for key, value in parameters.items():
        if key not in defaults:
            message = f"{key}={value!r} is no parameter of c4.5; known: {', '.join(defaults)}"
            raise SpecError(message)
        kind = type(defaults[key])
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number if kind is float else type(value) is kind):
            message = f"{key}={value!r} of c4.5 must be of type {kind.__name__}"
            raise SpecError(message)
    try:
        batch_learner = C45(**parameters)
    except GroveError as error:
        message = f"{error} (learner c4.5)"
        raise SpecError(message) from None
    return lambda schema, x: BatchSystem(batch_learner, schema, x)
