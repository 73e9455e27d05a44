"""Model events as JSON lines: one object an event, each with the number of its record."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.evaluation import EvaluationDue
from core.events import Drift, Event, InputsChanged, NodeTest, Pruned, Split
from core.measures.named_measures import defined, named
from core.schema.schema import Schema
from streamapp.errors import UsageError
from streamapp.worker.task.effects.model_happenings import moved_inputs

Write = Callable[[int, Event, Schema], None]


def event_of(record: int, event: Event, schema: Schema) -> dict[str, Any]:
    """Return an event as a JSON object: ``event`` names its kind, attributes are named, NaN is null.

    A split carries both merits, the bound they were compared with, the weight of the records they were
    computed from, and, if an inner node got another test, its previous test. ``classes`` are the two classes
    of a pair's tree; null: there is one tree for all classes.
    """
    name = "".join(f"-{c.lower()}" if c.isupper() else c for c in type(event).__name__).lstrip("-")
    body: dict[str, Any] = {"event": name, "record": record}
    if isinstance(event, EvaluationDue):
        body |= event.evaluation.to_dict()
        if event.sums is not None:
            body |= defined(named(event.sums.read(), schema.classes))
        if event.curve is not None:
            body |= defined(event.curve.read().to_dict())
    else:
        body |= {f.name: getattr(event, f.name) for f in dataclasses.fields(event)}
        del body["row"], body["model"]
    if isinstance(event, Split):
        body |= _test_of(event, schema)
    if isinstance(event, Split | Drift):
        classes = body.pop("pair")
        body["classes"] = None if classes is None else [schema.classes[code] for code in classes]
    if isinstance(event, InputsChanged):
        body["moved"] = moved_inputs(event, schema)
    if isinstance(event, Split | Pruned):
        body["former"] = None if event.former is None else _test_of(event.former, schema)
    return {key: _finite(value) for key, value in body.items()}


def _test_of(test: Split | NodeTest, schema: Schema) -> dict[str, Any]:
    """Return a test with the names of its attribute and value."""
    attribute = schema.attributes[test.attribute]
    value: Any = test.value
    if test.test == "category":
        value = attribute.values[int(value)]
    return {
        "attribute": attribute.name,
        "test": test.test,
        "value": None if test.test == "multiway" else value,
    }


@contextmanager
def event_lines(path: Path | None) -> Iterator[Write | None]:
    """Open a file for events, and close it in the end; None: events are not wanted."""
    if path is None:
        yield None
        return
    try:
        file = path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        message = f"--events {path}: {error.strerror}; choose another file"
        raise UsageError(message) from None
    with file:

        def write(record: int, event: Event, schema: Schema) -> None:
            file.write(json.dumps(event_of(record, event, schema), ensure_ascii=False) + "\n")

        yield write


def _finite(value: Any) -> Any:
    """JSON has no infinities: MOA's merit of a lone attribute's rival is minus infinity."""
    if isinstance(value, tuple | list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
