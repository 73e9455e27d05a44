"""Differences of two models: spec, schema, counts, and the first node with another test."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from core.export.outline import outline
from core.model.model import Model
from core.tree.outline import Outline


class ModelDifference(NamedTuple):
    """One part in which two models differ."""

    part: str  # spec, schema, counts or tree
    name: str
    first: Any
    second: Any

    def __str__(self) -> str:
        return f"{self.part:<7} {self.name}: {_shown(self.first)} | {_shown(self.second)}"


def differences(first: Model, second: Model) -> list[ModelDifference]:
    """Return the differences in this order: spec, schema, counts, tree."""
    differing = [
        *_of("spec", first.spec.to_dict(), second.spec.to_dict()),
        *_of("schema", json.loads(first.schema.to_json()), json.loads(second.schema.to_json())),
        *_of("counts", dataclasses.asdict(first.summary()), dataclasses.asdict(second.summary())),
    ]
    node = _first_node(first, second)
    return differing if node is None else [*differing, node]


def _of(part: str, first: Any, second: Any, name: str = "") -> Iterator[ModelDifference]:
    """Yield differences of documents, with dotted names."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            yield from _of(part, first.get(key), second.get(key), f"{name}.{key}" if name else key)
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, (first_item, second_item) in enumerate(zip(first, second, strict=True)):
            yield from _of(part, first_item, second_item, f"{name}[{number}]")
    elif first != second:
        yield ModelDifference(part, name, first, second)


def _first_node(first: Model, second: Model) -> ModelDifference | None:
    """Return the first node, parents first and from left to right, with different tests."""
    ours, theirs = ({node.number: node for node in outline(model)} for model in (first, second))
    stack: list[tuple[int, int, str]] = [(0, 0, "root")]
    while stack:
        our_node, their_node, path = stack.pop()
        tests = _test(ours, our_node), _test(theirs, their_node)
        if tests[0] != tests[1]:
            return ModelDifference("tree", path, *tests)
        for our_child, their_child in reversed(
            list(zip(ours[our_node].children, theirs[their_node].children, strict=True))
        ):
            way = str(ours[our_child].branch)
            stack.append((our_child, their_child, way if path == "root" else f"{path} and {way}"))
    return None


def _test(nodes: dict[int, Outline], number: int) -> str:
    """Return the test of a node in words; `leaf` if it has none."""
    return ", ".join(str(nodes[child].branch) for child in nodes[number].children) or "leaf"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
