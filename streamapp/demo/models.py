"""The three models of the demo: the same tree on the same stream, with three ways of asking for labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# A tree that grows early: a tenth of 48,842 labels is little to decide splits with.
LEARNER = {"name": "h-tree", "grace_period": 50, "delta": 0.01, "tau": 0.2}
TENTH = {"name": "count", "limit": 0.1}


@dataclass(frozen=True)
class DemoModel:
    """A model key, how it asks, and the spec for that."""

    key: str
    title: str
    spec: Mapping[str, Any]


MODELS = (
    DemoModel(
        "all-labels",
        "asks for every label",
        {"learner": LEARNER, "query": "always", "drift": "ddm"},
    ),
    DemoModel(
        "uncertainty-10",
        "asks for 10 %, where it is unsure",
        {"learner": LEARNER, "query": "variable_uncertainty", "budget": TENTH, "drift": "ddm"},
    ),
    DemoModel(
        "random-10",
        "asks for 10 %, at random",
        {"learner": LEARNER, "query": "random", "budget": TENTH, "drift": "ddm"},
    ),
)
KEYS = tuple(model.key for model in MODELS)
