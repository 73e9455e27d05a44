"""Plug-in registry: ``<name>.py`` in a family's package holds a class ``Plugin``; a spec names it.

The registry lists a family's modules and imports a module on first use; it depends on no plug-in. A spec may
write ``-`` for ``_``, and a file may list further names of its plug-in (``ALIASES``). The position in the
sorted list of names is the plug-in's *kind*: the integer that compiled code branches on. Kinds never leave
the process: a snapshot holds names.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Container
from types import ModuleType
from typing import Any, Final

from core import layout as layout
from core import spelling
from core.errors import GroveError, UnknownPluginError
from core.kernels import jit
from core.kernels.jit import kernel
from core.kernels.native.record_types import type_of
from core.kernels.records import Record

FAMILIES: Final = {
    "learners": "core.learners",
    "observers": "core.observers",
    "criteria": "core.criteria",
    "bounds": "core.bounds",
    "schedules": "core.learners.hoeffding.schedules",
    "leaf_models": "core.leaf_models",
    "drift": "core.drift",
    "inputs": "core.inputs",
    "queries": "core.active.queries",
    "budgets": "core.active.budgets",
    "acquirers": "core.active.acquirers",
    "calibrators": "core.calibrators",
}
"""The families that make up a spec, and the package of each."""

PACKAGES: Final = {"streams": "core.streams", **FAMILIES}
"""All families, and the package of each."""


NO_PLUGINS: Final = ("base", "protocol", "dispatch", "arenas", "arrays", "input_watch")
"""Modules of a family that are not plug-ins; modules whose names begin with ``_`` are no plug-ins either."""

PLUGIN_FOLDERS: Final = ("presets", "baselines")
"""Folders below a family's package whose modules are plug-ins as well."""


@functools.cache
def module_paths(family: str) -> dict[str, str]:
    """Return the full name of the module of each plug-in, in the order of the plug-ins' names.

    A plug-in is a module of the family's package; a plug-in in a folder is ``<name>/<name>.py``.
    """
    plugins: dict[str, str] = {}
    waiting = [PACKAGES[family]]
    while waiting:
        package = waiting.pop()
        folder = package.rpartition(".")[2]
        has_plugins = package == PACKAGES[family] or folder in PLUGIN_FOLDERS
        for entry in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            name = entry.name.rpartition(".")[2]
            if entry.ispkg:
                waiting.append(entry.name)
            elif (has_plugins and name not in NO_PLUGINS and not name.startswith("_")) or name == folder:
                plugins[name] = entry.name
    return dict(sorted(plugins.items()))


def names(family: str) -> tuple[str, ...]:
    """Return the names of a family's plug-ins, sorted."""
    return tuple(module_paths(family))


def module(family: str, name: str) -> ModuleType:
    """Return the module of a plug-in; UnknownPluginError lists the known names and the nearest one."""
    file_name = spelling.of_file(name)
    if file_name not in names(family):
        others = aliases(family)
        if file_name not in others:
            spelled = [[spelling.of_spec(family, n) for n in listed] for listed in (names(family), others)]
            msg = f"unknown {SINGULAR[family]} {name!r}; {spelling.known(name, *spelled)}"
            raise UnknownPluginError(msg)
        file_name = others[file_name]
    return importlib.import_module(module_paths(family)[file_name])


@functools.cache
def aliases(family: str) -> dict[str, str]:
    """Return the aliases of a family's plug-ins, spelled as file names, and the file of each."""
    return {alias: name for name in names(family) for alias in getattr(module(family, name), "ALIASES", ())}


def modules(family: str) -> tuple[ModuleType, ...]:
    """Return all modules of a family in the order of their kinds."""
    return tuple(module(family, name) for name in names(family))


def plugin(family: str, name: str) -> Any:
    """Return the class of a plug-in."""
    return module(family, name).Plugin


def kind(family: str, name: str) -> int:
    """Return the integer that stands for a plug-in in compiled code."""
    return names(family).index(name)


def every_plugin(_module: ModuleType) -> bool:
    """Return that a plug-in must have a kernel."""
    return True


def no_plugin(_module: ModuleType) -> bool:
    """Return that a plug-in may lack a kernel."""
    return False


@functools.cache
def dispatch(
    family: str,
    function: str,
    parameters: str,
    otherwise: int | None = None,
    signature: str | None = None,
    inline: tuple[str, ...] = (),
    needed_by: Callable[[ModuleType], bool] = every_plugin,
) -> Any:
    """Return compiled code that calls a function of the plug-in with a given kind.

    ``dispatch("drift", "update", "p, state, error")`` has the parameters ``kind, p, state, error`` and calls
    ``core.drift.<name>.update(p, state, error)``. A plug-in whose module ``needed_by`` accepts must have the
    function, unless ``otherwise`` is given, which is then the result. The kind of another plug-in without it
    must not be passed. The code branches on an integer, because a compiled function as an argument costs
    microseconds a call and defeats the cache.

    With a signature (without kind) each function is compiled separately, when a plan needs it, and called
    through its address: a call takes 2 ns, and the caller is compiled without it. Functions of the plug-ins
    in ``inline`` are inlined.
    """
    members = list(enumerate(modules(family)))
    inlined = frozenset(kind for kind, name in enumerate(names(family)) if name in inline)
    if otherwise is None:
        require([plugin for _, plugin in members if needed_by(plugin)], family, function, parameters)
    name = f"{PACKAGES[family]}.{function}"
    return dispatch_to(members, name, parameters, otherwise, signature, inlined)


def require(members: list[ModuleType], family: str, function: str, parameters: str) -> None:
    """Raise GroveError if a module of a family lacks a kernel."""
    for member in members:
        if not hasattr(member, function):
            msg = (
                f"{member.__name__} must have the kernel {function}({parameters}); add it, as "
                f"{PACKAGES[family]}.{BASES.get(family, 'base')} describes it"
            )
            raise GroveError(msg)


def dispatch_to(
    members: list[tuple[int, ModuleType]],
    name: str,
    parameters: str,
    otherwise: int | None = None,
    signature: str | None = None,
    inlined: Container[int] = (),
) -> Any:
    """Return compiled code that calls a function of one of these modules by kind: the last part of ``name``.

    No other dispatcher may have the same full name.

    A function may declare a record of its own for a parameter, by the annotation: it gets the same words with
    the names of its record. The parameter ``p`` is the record of the plug-in's numeric parameters.
    """
    function = name.rpartition(".")[2]
    having = {kind: member for kind, member in members if hasattr(member, function)}
    parameter_names = parameters.split(", ")
    records = {kind: _own_records(member, function, parameter_names) for kind, member in having.items()}
    scope: dict[str, Any] = {f"of_{kind}": getattr(member, function) for kind, member in having.items()}
    branches = list(having)
    if signature is not None and not jit.DISABLED:
        branches = [kind for kind in having if kind in inlined]
        there = {
            kind: (member.__name__, getattr(member, function))
            for kind, member in having.items()
            if kind not in inlined
        }
        types = {
            kind: {number: type_of(record) for number, record in records[kind].items()} for kind in there
        }
        scope["there"] = jit.kernel_table(name, signature, parameter_names, there, len(members), types)
    calls = {}
    for kind in having:
        arguments = list(parameter_names)
        for number, record in records[kind].items():
            scope[f"Record_{kind}_{number}"] = record
            words = parameter_names[number]
            arguments[number] = f"Record_{kind}_{number}({words}.ints, {words}.floats, {words}.start)"
        calls[kind] = f"of_{kind}({', '.join(arguments)})"
    last = f"there(kind, {parameters})" if "there" in scope else calls[branches.pop()]
    lines = [f"def {function}(kind, {parameters}):"]
    for kind in branches:
        lines.append(f"    if kind == {kind}:")
        lines.append(f"        return {calls[kind]}")
    if otherwise is not None:
        lines.append(f"    if not ({sum(1 << kind for kind in having)} >> kind) & 1:")
        lines.append(f"        return {otherwise}")
    lines.append(f"    return {last}")
    exec("\n".join(lines), scope)  # noqa: S102
    return kernel(scope[function])


def _own_records(member: ModuleType, function: str, parameters: list[str]) -> dict[int, type[Record]]:
    """Return the records that a module's function declares for its parameters, by number."""
    kernel_function = getattr(member, function)
    body = getattr(kernel_function, "py_func", kernel_function)
    if body is kernel_function and not jit.DISABLED:
        msg = f"{member.__name__}.{function} must be a kernel: put @kernel above it (core/kernels/jit.py)"
        raise GroveError(msg)
    own: dict[int, type[Record]] = {}
    names = list(inspect.signature(body).parameters)
    if len(names) != len(parameters):
        msg = (
            f"{member.__name__}.{function}({', '.join(names)}) must have the parameters "
            f"({', '.join(parameters)}); the base of its family describes them"
        )
        raise GroveError(msg)
    for number, (parameter, name) in enumerate(zip(parameters, names, strict=True)):
        if parameter == PARAMETERS:
            own[number] = member.Plugin.record()
            continue
        declared = body.__annotations__.get(name)
        if isinstance(declared, str):
            declared = body.__globals__.get(declared)
        if inspect.isclass(declared) and issubclass(declared, Record):
            own[number] = declared
    return own


BASES: Final = {"learners": "protocol"}
"""The module of a family that describes its kernels, if it is not ``base``."""

PARAMETERS: Final = "p"
"""The parameter of dispatched functions that stands for the numeric parameters of the plug-in."""

SINGULAR = {
    "streams": "generator",
    "learners": "learner",
    "observers": "observer",
    "criteria": "criterion",
    "bounds": "bound",
    "schedules": "schedule",
    "leaf_models": "leaf model",
    "drift": "drift detector",
    "inputs": "input detector",
    "queries": "query strategy",
    "budgets": "budget",
    "acquirers": "acquirer",
    "calibrators": "calibrator",
}
