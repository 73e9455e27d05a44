"""McDiarmid tree: the Hoeffding tree with a bound that holds for its criterion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.learners.hoeffding.presets import h_tree
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(h_tree.Plugin):
    """H-Tree with McDiarmid's ε: ``{"name": "mcdiarmid-tree", "criterion": "gini", "delta": 0.05}``.

    With ``info_gain`` a leaf of two classes needs at least 171,406 records (δ = 0.05) to split, so that on a
    shorter stream the tree is only its root (Rutkowski and others 2013). Leaves predict as in ``h-tree``.
    CDT's leaves vote for their majority class: ``"leaf_model": "mc"``, the default with ``compat``.
    ``{"name": "mcdiarmid-tree", "compat": "cdt", "delta": 1}`` is the tree that CDT's code grows: any lead
    splits.
    """

    criterion: Any = "gini"
    bound: Any = "mcdiarmid"
    tau: float = number(0.0, at_least=0.0, at_most=1.0)

    compat_defaults: ClassVar[dict[str, Any]] = {"leaf_model": "mc"}
    axis_defaults: ClassVar[dict[str, Any]] = {"grace_period": 100.0, "binary_splits": True}
    cdt_defaults: ClassVar[dict[str, Any]] = {"candidates": 100, "mcd_form": "cdt"}
