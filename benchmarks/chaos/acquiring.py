"""Models that buy features: their keys, specs and prices, and the controls that create them."""

from __future__ import annotations

from typing import Any, Final

import orjson

from benchmarks.rig.stream import NAMES

TREE: Final[dict[str, object]] = {"name": "h-tree", "grace_period": 50, "delta": 1e-2, "tau": 0.2}
LABELS: Final[dict[str, object]] = {"query": "random", "budget": {"name": "count", "limit": 0.3}}
PATIENT_MS: Final = 600_000
HASTY_MS: Final = 3_000
"""Far less than faults last: many values come after the record has been answered."""

SPECS: Final[dict[str, dict[str, Any]]] = {
    "buys-path": {
        "learner": TREE,
        **LABELS,
        "acquire": {"name": "path", "explore": 0.2, "timeout_ms": PATIENT_MS},
    },
    "buys-hastily": {
        "learner": TREE,
        **LABELS,
        "acquire": {"name": "path", "explore": 0.2, "timeout_ms": HASTY_MS},
    },
    "buys-random": {
        "learner": TREE,
        **LABELS,
        "acquire": {"name": "random", "share": 0.4, "timeout_ms": PATIENT_MS},
    },
    "asks": {
        "learner": {"name": "ufodt", "hypotheses": 40},
        **LABELS,
        "acquire": {"name": "utility", "timeout_ms": PATIENT_MS},
    },
    "asks-several": {
        "learner": {"name": "ufodt", "hypotheses": 40, "criterion": "ig"},
        **LABELS,
        "acquire": {"name": "utility", "batch": 3, "timeout_ms": PATIENT_MS},
    },
}
"""Specs by model key."""

KEYS: Final = tuple(SPECS)

PRICES: Final = {name: 0.5 * number for number, name in enumerate(NAMES, start=1)}

SCHEMA: Final = {
    "attributes": [{"name": name, "range": [0, 10], "cost": price} for name, price in PRICES.items()],
    "classes": ["no", "yes"],
}


def controls() -> dict[str, bytes]:
    """Return the control that creates each model, by key."""
    return {
        key: orjson.dumps({"command": "create", "spec": spec, "schema": SCHEMA})
        for key, spec in SPECS.items()
    }
