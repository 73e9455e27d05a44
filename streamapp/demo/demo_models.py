"""The models of the demo: one tree on one stream, with three ways of requesting labels; or given models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.errors import UsageError

TENTH = {"name": "count", "limit": 0.1}
# Leaves of naive Bayes suit the demo's stream, whose attributes are normal within each class.
TREE = {"name": "h-tree", "leaf_model": "nb"}
# A tree that grows early: the models that buy features see few records.
EARLY = {"name": "h-tree", "grace_period": 50, "delta": 0.01, "tau": 0.2}


@dataclass(frozen=True)
class DemoModel:
    """A model key, the description of its requests, and its spec."""

    key: str
    asks: str
    spec: Mapping[str, Any]


MODELS = (
    DemoModel("all-labels", "every label", {"learner": TREE, "query": "always"}),
    DemoModel("ask-10", "10 %, where unsure", {"learner": TREE, "query": "ask", "budget": TENTH}),
    DemoModel("random-10", "10 %, at random", {"learner": TREE, "query": "random", "budget": TENTH}),
)
"""One tree on one stream, with three ways of requesting labels."""

# Nothing is lost here, so that every episode ends without its timeout.
PATIENT = {"timeout_ms": 600_000}

FEATURE_MODELS = (
    DemoModel(
        "buy-all",
        "every feature",
        {"learner": EARLY, "query": "always", "acquire": {"name": "random", "share": 1.0, **PATIENT}},
    ),
    DemoModel(
        "buy-path",
        "what its path tests",
        {"learner": EARLY, "query": "always", "acquire": {"name": "path", "explore": 0.1, **PATIENT}},
    ),
    DemoModel(
        "buy-random",
        "15 %, at random",
        {"learner": EARLY, "query": "always", "acquire": {"name": "random", "share": 0.15, **PATIENT}},
    ),
)
"""One tree on one stream of records without features, with three ways of buying features."""


def model_of_person(models: Sequence[DemoModel]) -> DemoModel:
    """Return the model whose labels a person gives: of the three defaults the unsure one, else the last."""
    return next((model for model in models if model.key == "ask-10"), models[-1])


def read_models(arguments: Sequence[str], *, features: bool = False) -> tuple[DemoModel, ...]:
    """Return the models of `NAME=SPEC` arguments (a preset, JSON or @FILE); without any, the three
    defaults.

    features: the models buy features instead of labels.
    """
    if not arguments:
        return FEATURE_MODELS if features else MODELS
    models = tuple(_read(argument, features) for argument in arguments)
    if len({model.key for model in models}) < len(models):
        message = "--model: two models have the same name; give each its own"
        raise UsageError(message)
    return models


def _read(argument: str, features: bool) -> DemoModel:
    from streamapp.lab.prequential import read_spec

    name, equals, text = argument.partition("=")
    if not (name and equals and text):
        message = f"--model {argument}: must be NAME=SPEC, the spec a preset's name, JSON or @FILE"
        raise UsageError(message)
    spec = read_spec(text, f"--model {name}=")
    if features:
        if spec.acquirer is None:
            message = f'--model {argument}: with --features a model must buy some; add "acquire": "path"'
            raise UsageError(message)
        return DemoModel(name, f"by {spec.acquirer.name}", spec.to_dict())
    return DemoModel(name, f"{spec.budget.limit:.3g} by {spec.query.name}", spec.to_dict())
