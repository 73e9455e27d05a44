"""The three models of the demo: the same tree on the same stream, with three ways of asking for labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# A tree that grows early: a tenth of 48,842 labels is little to decide splits with.
LEARNER = {"name": "h-tree", "grace_period": 50, "delta": 0.01, "tau": 0.2}
# Who asks where it is unsure sees hard records, now more, now fewer: an alarm needs more evidence.
DRIFT = {"name": "ddm", "warning": 3, "drift": 5, "min_errors": 30}
TENTH = {"name": "count", "limit": 0.1}


@dataclass(frozen=True)
class DemoModel:
    """A model key, what it asks for in words, and the spec for that."""

    key: str
    asks: str
    spec: Mapping[str, Any]


MODELS = (
    DemoModel(
        "all-labels",
        "every label",
        {"learner": LEARNER, "query": "always", "drift": DRIFT},
    ),
    DemoModel(
        "uncertainty-10",
        "10 %, where unsure",
        {"learner": LEARNER, "query": "variable_uncertainty", "budget": TENTH, "drift": DRIFT},
    ),
    DemoModel(
        "random-10",
        "10 %, at random",
        {"learner": LEARNER, "query": "random", "budget": TENTH, "drift": DRIFT},
    ),
)
KEYS = tuple(model.key for model in MODELS)
