"""Plug-ins are files: ``core/<family>/<name>.py`` holds a class ``Plugin``, a spec names the file.

The registry lists a family's modules, imports what is asked for, and knows nothing else. A spec may write
``-`` for ``_``. The position in the sorted list of names is the plug-in's *kind*: the integer that compiled
code branches on. Kinds never leave the process: a snapshot holds names.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from types import ModuleType
from typing import Any

from core.errors import UnknownPluginError
from core.jit import kernel

FAMILIES = (
    "learners",
    "observers",
    "criteria",
    "bounds",
    "schedules",
    "leaf_models",
    "drift",
    "queries",
    "budgets",
)


@functools.cache
def names(family: str) -> tuple[str, ...]:
    """Return the names of a family's plug-ins, sorted."""
    package = importlib.import_module(f"core.{family}")
    found = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in found if name != "base" and not name.startswith("_")))


def module(family: str, name: str) -> ModuleType:
    """Return the module of a plug-in."""
    file_name = str(name).replace("-", "_")
    if file_name not in names(family):
        known = ", ".join(n.replace("_", "-") if family == "learners" else n for n in names(family))
        msg = f"unknown {SINGULAR[family]} {name!r}; known: {known}"
        raise UnknownPluginError(msg)
    return importlib.import_module(f"core.{family}.{file_name}")


def modules(family: str) -> tuple[ModuleType, ...]:
    """Return all modules of a family in the order of their kinds."""
    return tuple(module(family, name) for name in names(family))


def plugin(family: str, name: str) -> Any:
    """Return the class of a plug-in."""
    return module(family, name).Plugin


def kind(family: str, name: str) -> int:
    """Return the integer that stands for a plug-in in compiled code."""
    return names(family).index(name)


def dispatch(family: str, function: str, parameters: str) -> Any:
    """Return compiled code that calls a function of the plug-in with a given kind.

    ``dispatch("queries", "decide", "knobs, floats")`` has the parameters ``kind, knobs, floats`` and calls
    ``core.queries.<name>.decide(knobs, floats)``. Plug-ins without such a function are left out. Branches
    on an integer, because a compiled function as an argument costs microseconds a call and defeats the
    cache.
    """
    members = [(n, m) for n, m in zip(names(family), modules(family), strict=True) if hasattr(m, function)]
    scope: dict[str, Any] = {f"{name}_{function}": getattr(m, function) for name, m in members}
    lines = [f"def {function}(kind, {parameters}):"]
    for name, _ in members[:-1]:
        lines.append(f"    if kind == {kind(family, name)}:")
        lines.append(f"        return {name}_{function}({parameters})")
    lines.append(f"    return {members[-1][0]}_{function}({parameters})")
    exec("\n".join(lines), scope)  # noqa: S102
    return kernel(scope[function])


SINGULAR = {
    "streams": "generator",
    "learners": "learner",
    "observers": "observer",
    "criteria": "criterion",
    "bounds": "bound",
    "schedules": "schedule",
    "leaf_models": "leaf model",
    "drift": "drift detector",
    "queries": "query strategy",
    "budgets": "budget",
}
