"""C-Tree: the confidence decision tree of De Rosa and Cesa-Bianchi."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core.errors import ParameterError
from core.learners.hoeffding.presets import h_tree
from core.plugin import flag, number


@dataclass(frozen=True, slots=True)
class Plugin(h_tree.Plugin):
    """H-Tree with confidence intervals of the criterion itself: ``{"name": "c-tree", "c": 0.05}``.

    ``criterion`` is gini, entropy or km; ``variant`` practical (parameter ``c``) or theory (``delta``). It
    has no ties and binary tests, as CDT uses it (De Rosa and Cesa-Bianchi 2017). Leaves predict as in
    ``h-tree``. CDT's leaves vote for their majority class: ``"leaf_model": "mc"``, the default with
    ``compat``. If two classes have equal weight in a leaf, the majority is the second: CDT returns 1 wherever
    its share is at least ½ [D9]. km and the theory of gini are for two classes. ``{"name": "c-tree",
    "compat": "cdt", "c": 0.05, "freeze_null": true}`` grows the trees of CDT's code, which counts the class
    as one more attribute.
    """

    criterion: Any = "gini"
    bound: Any = "c_tree"
    tau: float = number(0.0, at_least=0.0, at_most=1.0)
    freeze_null: bool = flag(False)
    """With compat "cdt": a leaf where not to split won is never split any more. CDT's code makes it again
    with a depth of 0, so that its ε is not a number.
    """

    compat_defaults: ClassVar[dict[str, Any]] = {"leaf_model": "mc"}
    axis_defaults: ClassVar[dict[str, Any]] = {"grace_period": 100.0, "binary_splits": True}
    last_of_two: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters, and that ``freeze_null`` comes with compat "cdt"."""
        super(Plugin, self).__post_init__()
        if self.freeze_null and self.compat != "cdt":
            msg = f"freeze_null=True must be false with compat={self.compat!r}: it is a fault of CDT's code"
            raise ParameterError(msg)

    @property
    def freezes(self) -> bool:
        """Whether leaves where not to split won stay leaves."""
        return self.freeze_null
