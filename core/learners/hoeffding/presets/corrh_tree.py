"""CorrH-Tree: the Hoeffding tree with the classification error and the bound used correctly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.learners.hoeffding.presets import h_tree
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(h_tree.Plugin):
    """H-Tree on the error, with gaps above 2ε: ``{"name": "corrh-tree", "delta": 0.05}``.

    Two intervals of half-width ε are apart only beyond 2ε. It has no ties and binary tests, as CDT uses it
    [D14] (Matuszyk and others 2013, Duda and others 2014). Leaves predict as in ``h-tree``. CDT's leaves vote
    for their majority class: ``"leaf_model": "mc"``, the default with ``compat``. With ``compat="cdt"`` the
    criterion is ``sorted_error``, the error as CDT's code computes it.
    """

    criterion: Any = "error"
    tau: float = number(0.0, at_least=0.0, at_most=1.0)

    compat_defaults: ClassVar[dict[str, Any]] = {"leaf_model": "mc"}
    axis_defaults: ClassVar[dict[str, Any]] = {
        "bound_factor": 2.0,
        "grace_period": 100.0,
        "binary_splits": True,
    }
    cdt_defaults: ClassVar[dict[str, Any]] = {"candidates": 100, "criterion": "sorted_error"}
