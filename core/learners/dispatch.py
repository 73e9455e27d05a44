"""The kernels of learners by kind: which module has them, and the calls that branch on the kind.

core/learners/protocol.py describes the kernels.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any, Final

from core import registry
from core.kernels.jit import FLOATS, INTS
from core.learners.protocol import Learner


@functools.cache
def modules() -> tuple[str, ...]:
    """Return the modules of kernels of all learners; kernels branch on a module's position in this tuple."""
    return tuple(sorted({_module_name(name) for name in registry.names("learners")}))


def _module_name(name: str) -> str:
    module = registry.module("learners", name)
    kernels: str | None = module.Plugin.kernels
    return kernels or module.__name__


def kernels_of(learner: Learner) -> ModuleType:
    """Return the module of a learner's kernels."""
    return importlib.import_module(_module_name(learner.name))


def modules_of(learner: Learner) -> tuple[str, ...]:
    """Return the modules that kernels are compiled for in a plan with this learner."""
    return _module_name(learner.name), type(learner).__module__, *learner.compiled_with


def kind_of(learner: Learner) -> int:
    """Return the integer that stands for a learner's kernels in compiled code."""
    return modules().index(_module_name(learner.name))


INLINED: Final = (
    "core.learners.hoeffding.kernels",
    "core.learners.baselines.majority_class",
    "core.learners.baselines.no_change",
)
"""Modules of kernels that are inlined where they are called: most models are trees, and a call would be a
large part of a baseline's work. All other modules are called through addresses.
"""


def _inlined(function: str) -> frozenset[int]:
    if function not in ("answer", "learn", "uncertainty"):
        return frozenset()
    return frozenset(kind for kind, name in enumerate(modules()) if name in INLINED)


@functools.cache
def _dispatch(function: str, parameters: str, signature: str, otherwise: int | None = None) -> Any:
    members = [(kind, importlib.import_module(name)) for kind, name in enumerate(modules())]
    if otherwise is None:
        registry.require([module for _, module in members], "learners", function, parameters)
    return registry.dispatch_to(
        members, f"core.learners.{function}", parameters, otherwise, signature, _inlined(function)
    )


def dispatcher() -> tuple[Any, Any, Any]:
    """Return ``answer(kind, …)``, ``learn(kind, …)`` and ``route_ahead(kind, …)`` over all learners."""
    return (
        _dispatch(
            "answer",
            "plan, block, place, row, prepared, scratch, shares",
            f"UniTuple(int64, 3)(PlanRecord, Words, int64, Row, int64, {FLOATS}, {FLOATS})",
        ),
        _dispatch(
            "learn",
            "plan, block, place, row, hint, work",
            "UniTuple(int64, 2)(PlanRecord, Words, int64, Row, int64, Work)",
        ),
        _dispatch(
            "route_ahead",
            "plan, block, xs, d, ends",
            f"boolean(PlanRecord, Words, {FLOATS}, int64, {INTS})",
            otherwise=False,
        ),
    )


def uncertainty_dispatcher() -> Any:
    """Return ``uncertainty(kind, …)`` over all learners."""
    return _dispatch(
        "uncertainty",
        "plan, block, place, shares, scratch, columns",
        f"UniTuple(float64, 3)(PlanRecord, Words, int64, {FLOATS}, {FLOATS}, int64)",
    )


def has_leaf_table(learner: Learner) -> bool:
    """Return whether a learner has ``leaf_table``."""
    return hasattr(kernels_of(learner), "leaf_table")


def leaf_table_dispatcher() -> Any:
    """Return ``leaf_table(kind, …)`` over the learners that have it."""
    members = [(kind, importlib.import_module(name)) for kind, name in enumerate(modules())]
    return registry.dispatch_to(
        members,
        "core.learners.leaf_table",
        "plan, block, place",
        signature="LeafTable(PlanRecord, Words, int64)",
    )


def problem_dispatcher() -> Any:
    """Return ``block_problem(kind, …)`` over all learners."""
    return _dispatch(
        "block_problem",
        "plan, block, blank_address",
        "int64(PlanRecord, Words, int64)",
        otherwise=0,
    )
