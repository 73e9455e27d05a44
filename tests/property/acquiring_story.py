"""A partition whose models buy features: records with everything that can happen to an episode."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import orjson

from tests.topology.partition import Record
from topics.codecs import encode_instances
from topics.columns.records import Features

TIMEOUT = 150

SPECS: dict[str, dict[str, Any]] = {
    "path": {"acquire": {"name": "path", "timeout_ms": TIMEOUT, "explore": 0.3}, "query": "always"},
    "budget": {
        "acquire": {"name": "path", "timeout_ms": TIMEOUT, "explore": 0.5, "budget": 1.5},
        "query": {"name": "variable_uncertainty"},
        "budget": {"name": "count", "limit": 0.5},
        "drift": "ddm",
        "evaluation": {"window": 20, "every": 9, "share": 0.1},
    },
    "random": {
        "acquire": {"name": "random", "share": 0.6, "timeout_ms": TIMEOUT},
        "query": {"name": "random"},
        "budget": {"name": "count", "limit": 0.6},
        "evaluation": {"window": 20, "every": 9, "share": 0.1},
    },
    "utility": {
        "learner": {"name": "ufodt", "hypotheses": 6, "n_thresholds": 3, "discount": 0.05, "warm_up": 8},
        "acquire": {"name": "utility", "timeout_ms": TIMEOUT},
        "query": "always",
    },
    "utility_by_two": {
        "learner": {
            "name": "ufodt",
            "hypotheses": 5,
            "n_thresholds": 2,
            "warm_up": 3,
            "record_budget": 2.5,
            "thresholds": "exhaustive",
            "feature_selection": True,
        },
        "acquire": {"name": "utility", "timeout_ms": TIMEOUT, "batch": 2},
        "query": {"name": "random"},
        "budget": {"name": "count", "limit": 0.7},
        "drift": {"name": "ddm", "reaction": "rebuild"},
        "evaluation": {"window": 20, "every": 9, "share": 0.1},
    },
}


def acquiring_story(seed: int, n: int) -> list[Record]:
    """Return a sequence of records, most of them with features missing, in an order by chance."""
    draw = random.Random(seed)
    records = [_control(key, command="create", schema=_schema(draw)) for key in "ab"]
    clock, number = 0, 0
    ids = ["none"]
    wrong_at_first = 10**10 * (seed % 4 == 0)  # a device that thinks it is another year
    while len(records) < n:
        clock += draw.choice([0, 0, 1, 5, 40])
        source = draw.choices(("instances", "feature_values", "labels", "controls"), (10, 10, 4, 0.4))[0]
        for _ in range(draw.randrange(1, 8)):
            key = draw.choice("aab")
            number += 1
            value: bytes | None = b"{not json"
            if source == "instances":
                ids.append(draw.choice(ids[-10:]) if draw.random() < 0.1 else f"n{number}")
                value = _instance(draw, ids, number)
            elif source == "feature_values":
                value = _values(draw, draw.choice(ids[-12:]))
            elif source == "labels":
                value = orjson.dumps({"id": draw.choice(ids[-30:]), "label": draw.choice(["yes", "no"])})
            else:
                records.append(_random_control(draw, key, clock))
                break
            if draw.random() < 0.02:
                value = draw.choice([b"[]", None, b'{"id": 5}'])
            at = clock + (wrong_at_first if number == 1 else 0)
            records.append(Record(source, key.encode(), value, at))  # type: ignore[arg-type]
    return records


def _schema(draw: random.Random) -> dict[str, Any]:
    colour = {"name": "c", "kind": "nominal", "values": ["red"], "open": draw.random() < 0.7}
    numbers: list[dict[str, Any]] = [{"name": "x", "range": [0, 10]}, {"name": "y"}]
    if draw.random() < 0.3:
        numbers[1]["range"] = [0, 10]
    return {"attributes": [*numbers, colour], "classes_open": True, "max_classes": 4}


def _cells(draw: random.Random) -> dict[str, Any]:
    return {
        "x": round(draw.uniform(0, 10), 2),
        "y": round(draw.uniform(0, 10), 2),
        "c": draw.choice(["red", "green", 3]),
    }


def _instance(draw: random.Random, ids: list[str], n: int) -> bytes:
    if draw.random() < 0.05:  # a block
        x = np.array([[draw.uniform(0, 10), np.nan] for _ in range(3)])
        names = [f"b{n}-{row}" for row in range(3)]
        ids += names
        labels = [draw.choice(["yes", None]) for _ in range(3)]
        return encode_instances(Features.of(("x", "y"), x), format="arrow", ids=names, labels=labels)[0]
    cells = _cells(draw)
    document: dict[str, Any] = {"id": ids[-1], "features": cells}
    if draw.random() < 0.4:
        document["label"] = "yes" if cells["x"] > 5 else "no"
        if draw.random() < 0.05:
            document["label"] = f"class {draw.randrange(9)}"
    for name in ("x", "y", "c"):
        if draw.random() < 0.45:
            cells.pop(name)
    document["features"] = cells or {"y": 1.0}
    if draw.random() < 0.2:
        document["weight"] = draw.choice([0.5, 2])
    if draw.random() < 0.05:
        cells["late"] = draw.uniform(0, 1)
    return orjson.dumps(document)


def _values(draw: random.Random, name: str) -> bytes:
    cells = _cells(draw)
    asked = draw.choice([["x"], ["x"], ["x"], ["y"], ["c"], ["x", "y", "c"], ["y", "c"], []])
    document: dict[str, Any] = {"id": name}
    values = {feature: cells[feature] for feature in asked}
    if asked and draw.random() < 0.2:
        document["unavailable"] = {asked[0]: "nobody knows"}
        del values[asked[0]]
    if draw.random() < 0.03:
        values["x"] = "not a number"
    if values:
        document["features"] = values
    if draw.random() < 0.05 or not asked:
        document["finish"] = True
    return orjson.dumps(document)


def _control(key: str, at: int = 0, **body: Any) -> Record:
    return Record("controls", key.encode(), orjson.dumps(body), at)


def _random_control(draw: random.Random, key: str, at: int) -> Record:
    command = draw.choice(["freeze", "thaw", "reset", "delete", "create", "configure"])
    if command == "thaw":
        return _control(key, at, command="freeze", frozen=False)
    body: dict[str, Any] = {}
    if command == "create":
        body["schema"] = _schema(draw)
    if command == "configure":
        acquire = draw.choice(
            [
                "none",
                {"name": "path", "timeout_ms": TIMEOUT, "explore": 0.2},
                {"name": "utility", "timeout_ms": TIMEOUT},
            ]
        )
        body["spec"] = {"acquire": acquire}
    return _control(key, at, command=command, **body)
