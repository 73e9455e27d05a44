"""Leaf models: from a leaf's statistics and a record to votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.plugin import Parameters


@dataclass(frozen=True, slots=True)
class LeafModel(Parameters):
    """Predicts at a leaf.

    The module has two kernels. ``votes(plan, params, ints, floats, t, node, x, xs, scratch, out) -> (class,
    leaf_hint)`` writes the normalised votes to ``out`` (float64[class], zeros on entry) and returns the
    predicted class, -1 while no class is known, and a hint. ``account(plan, params, ints, floats, t, node,
    x, xs, label, weight, leaf_hint, scratch, vote_buffer)`` keeps score before the leaf learns a record; the
    hint is that of ``votes`` for the same record if nothing was learned since, else -1. ``x`` is the record,
    ``xs`` its numeric attributes, scratch four words an attribute and two a class, whatever they hold.
    """

    family: ClassVar[str] = "leaf_models"


def dispatcher() -> tuple[Any, Any]:
    """Return ``votes(kind, …)`` and ``account(kind, …)`` over all leaf models."""
    return (
        registry.dispatch("leaf_models", "votes", "plan, params, ints, floats, t, node, x, xs, scratch, out"),
        registry.dispatch(
            "leaf_models",
            "account",
            "plan, params, ints, floats, t, node, x, xs, label, weight, leaf_hint, scratch, vote_buffer",
        ),
    )
