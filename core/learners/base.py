"""Learners: the axes a tree is made of, and its decisions at a due leaf."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.errors import ParameterError
from core.plugin import Parameters, choice, count, number

AXES: dict[str, str] = {
    "criterion": "criteria",
    "bound": "bounds",
    "schedule": "schedules",
    "numeric_observer": "observers",
    "nominal_observer": "observers",
    "leaf_model": "leaf_models",
}
"""A learner's parameter that names a plug-in, and the family it names one of."""


@dataclass(frozen=True, slots=True)
class Learner(Parameters):
    """A tree learner; its file gives the axes their defaults, and decides.

    The axes' own parameters stand beside the learner's: ``{"name": "h-tree", "grace_period": 100}`` sets the
    parameter of the schedule. ``max_leaves`` stops growth [D1], and so does ``max_bytes`` of leaf records.
    """

    family: ClassVar[str] = "learners"

    criterion: Any = "info_gain"
    bound: Any = "hoeffding"
    schedule: Any = "grace_period"
    numeric_observer: Any = "gaussian"
    nominal_observer: Any = "nominal"
    leaf_model: Any = "nba"
    max_leaves: int = count(1_000_000, at_least=1)
    max_bytes: float = number(float(1 << 30), at_least=1.0)
    compat: str | None = choice(None, None, "moa")

    def to_dict(self) -> dict[str, Any]:
        """Return name, axes by name, and all parameters, the axes' among them."""
        body: dict[str, Any] = {"name": self.name.replace("_", "-")}
        for declared in dataclasses.fields(self):
            value = getattr(self, declared.name)
            if isinstance(value, Parameters):
                inner = value.to_dict()
                body[declared.name] = inner.pop("name")
                body |= inner
            else:
                body[declared.name] = value
        return body


def build(body: dict[str, Any]) -> Learner:
    """Return the learner that a spec describes."""
    given = dict(body)
    learner = registry.plugin("learners", given.pop("name"))
    defaults = {f.name: f.default for f in dataclasses.fields(learner)}
    arguments: dict[str, Any] = {}
    known = [name for name in defaults if name not in AXES]
    for axis, family in AXES.items():
        plugin = registry.plugin(family, given.pop(axis, defaults[axis]))
        names = [f.name for f in dataclasses.fields(plugin)]
        known += names
        arguments[axis] = plugin(**{name: given.pop(name) for name in names if name in given})
    arguments |= {name: given.pop(name) for name in list(given) if name in known}
    if given:
        msg = (
            f"{next(iter(given))}={next(iter(given.values()))!r} is no parameter of {body['name']!r}; "
            f"known: {', '.join(sorted([*known, *AXES]))}"
        )
        raise ParameterError(msg)
    built: Learner = learner(**arguments)
    return built
