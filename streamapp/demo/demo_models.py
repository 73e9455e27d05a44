"""The models of the demo: one tree on one stream, with three ways of requesting labels; or given models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.errors import UsageError

# A tree that grows early, because a tenth of 48,842 labels is little evidence for splits.
LEARNER = {"name": "h-tree", "grace_period": 50, "delta": 0.01, "tau": 0.2}
# A model that requests labels of unsure answers sees varying shares of hard records: an alarm needs more
# evidence.
DRIFT = {"name": "ddm", "warning": 3, "drift": 5, "min_errors": 30}
TENTH = {"name": "count", "limit": 0.1}
# A split makes all leaves more or less sure at once, so that the threshold must adapt within a few requests.
UNSURE = {"name": "variable_uncertainty", "step": 0.03}


@dataclass(frozen=True)
class DemoModel:
    """A model key, the description of its requests, and its spec."""

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
        {"learner": LEARNER, "query": UNSURE, "budget": TENTH, "drift": DRIFT},
    ),
    DemoModel(
        "random-10",
        "10 %, at random",
        {"learner": LEARNER, "query": "random", "budget": TENTH, "drift": DRIFT},
    ),
)

# Nothing is lost here, so that every episode ends without its timeout.
PATIENT = {"timeout_ms": 600_000}

FEATURE_MODELS = (
    DemoModel(
        "buy-all",
        "every feature",
        {"learner": LEARNER, "query": "always", "acquire": {"name": "random", "share": 1.0, **PATIENT}},
    ),
    DemoModel(
        "buy-path",
        "what its path tests",
        {"learner": LEARNER, "query": "always", "acquire": {"name": "path", "explore": 0.1, **PATIENT}},
    ),
    DemoModel(
        "buy-random",
        "15 %, at random",
        {"learner": LEARNER, "query": "always", "acquire": {"name": "random", "share": 0.15, **PATIENT}},
    ),
)
"""One tree on one stream of records without features, with three ways of buying features."""


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
