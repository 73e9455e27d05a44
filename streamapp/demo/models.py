"""The three models of the demo: the same tree on the same stream, with three ways of asking for labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DemoModel:
    """A model key and its spec."""

    key: str
    title: str
    spec: Mapping[str, Any]


MODELS = (
    DemoModel("all-labels", "asks for every label", {"query": "always", "drift": "ddm"}),
    DemoModel(
        "uncertainty-10",
        "asks for 10 %, where it is unsure",
        {
            "query": "variable_uncertainty",
            "budget": {"name": "count", "limit": 0.1},
            "drift": "ddm",
        },
    ),
    DemoModel(
        "random-10",
        "asks for 10 %, at random",
        {"query": "random", "budget": {"name": "count", "limit": 0.1}, "drift": "ddm"},
    ),
)
KEYS = tuple(model.key for model in MODELS)
