"""Attribute observers: the statistics of a leaf, per kind of attribute.

A *numeric* observer handles all numeric attributes of a leaf at once, a *nominal* observer all nominal
attributes; a tree has one of each. The statistics are a run of words in the leaf record with a shape from the
axes "class", "attribute" (numeric attributes) and "value" (values of all nominal attributes, one after
another).

Kernels of a module (``plan``: the PlanRecord; ``p``: the observer's numeric parameters by name;
``statistics``: the words of the leaf's statistics, for which a kernel may declare its own Record; ``k``:
number of known classes):

numeric  ``update_numeric(plan, p, statistics, label, xs, weight) -> bool``
            returns whether the record's known values were all added to the statistics; if not, the bound does
            not count the record's weight (``Leaf.left_out``)
         ``candidates_numeric(plan, p) -> int``: number of proposed thresholds per attribute
         ``propose_numeric(plan, p, statistics, k, start, end, candidates)``
            writes the thresholds of the numeric attributes start … end-1, and the class masses on their sides
            (``Candidates``)
         ``propose_roughly(plan, p, statistics, k, candidates) -> int`` (optional) does the same with an error
            of at most 1e-6 of the weight, side by side, for all attributes with a candidate and maybe more;
            returns the number of these attributes
         ``masses_numeric(plan, p, statistics, k, position, value, left, right)``
            writes the class masses on both sides of one threshold (float64[class]); -1 marks a class that
            never reached a side
         ``log_densities_numeric(plan, p, statistics, k, xs, scratch, out)`` adds ln f(x_a | c) of all
            attributes to out[c]; minus infinity stays (scratch: four words an attribute, two a class)
         ``densities_numeric(plan, p, statistics, k, xs, out)`` multiplies by the densities (MOA)
         ``problem_shared(plan, p, model) -> int`` as ``problem`` below, for the words that leaves share
nominal  ``update_nominal(plan, p, statistics, label, x, weight)``
         ``masses_nominal(plan, statistics, k, start, end, out)`` writes the class masses of the values
            start … end-1 to float64[class, value - start]
         ``may_be_multiway(plan, p, values) -> bool``: whether an attribute with this number of values may get
            a branch per value
         ``log_densities_nominal``, ``densities_nominal`` as above with the whole record x
both     ``problem(plan, p, statistics, k) -> int`` returns the number of the sentence in PROBLEMS that
            applies to a leaf's statistics, 0: none (core/plugin.py)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

from core import registry
from core.kernels.jit import FLOATS
from core.kernels.records import name_tuple
from core.plugin import Parameters


@dataclass(frozen=True, slots=True)
class Observer(Parameters):
    """The statistics that a leaf keeps of its records, and their kernels."""

    family: ClassVar[str] = "observers"
    kind: ClassVar[str]
    """Kind of the observed attributes: "numeric" or "nominal"."""
    axes: ClassVar[tuple[str | int, ...]]
    """Shape of a leaf's statistics; strings stand for sizes that the schema, or ``sizes``, defines."""

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the observer's named axes, which never change."""
        return {}

    @property
    def range(self) -> tuple[float, float]:
        """Return the range of the values of attributes whose schema declares none."""
        return 0.0, 1.0

    def shared(self, attributes: int) -> int:
        """Return the number of words that all leaves share, from ``PlanRecord.shared`` on.

        New words are zeros. More attributes add words at the end.
        """
        return 0

    def shape(self, classes: int, attributes: int, values: int) -> tuple[int, ...]:
        sizes = {"class": classes, "attribute": attributes, "value": values} | self.sizes()
        return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in self.axes)

    def clear(self, statistics: Any) -> None:
        """Write the statistics of an empty leaf (float64[…, shape])."""
        statistics[...] = 0.0


class Candidates(NamedTuple):
    """Thresholds proposed for numeric attributes, and the class masses on their sides."""

    left: Any
    """float64[class, column]: mass at or below the threshold; column = (attribute - start)·n + candidate."""
    right: Any
    """float64[class, column]: mass above it."""
    value: Any
    """float64[column]: the thresholds, NaN: no candidate."""


name_tuple(Candidates, "float64[:, ::1]", "float64[:, ::1]", "float64[::1]")


def _is_numeric(observer: ModuleType) -> bool:
    return bool(observer.Plugin.kind == "numeric")


def _is_nominal(observer: ModuleType) -> bool:
    return bool(observer.Plugin.kind == "nominal")


def _dispatch(
    function: str,
    parameters: str,
    signature: str | None = None,
    otherwise: int | None = None,
    needed_by: Callable[[ModuleType], bool] | None = None,
) -> Any:
    if needed_by is None:
        needed_by = _is_nominal if function.endswith("nominal") else _is_numeric
    return registry.dispatch("observers", function, parameters, otherwise, signature, needed_by=needed_by)


_STATISTICS = "PlanRecord, Words, Words, int64"


def numeric_dispatcher() -> tuple[Any, ...]:
    """Return update, propose, candidates, masses, log densities and densities over the numeric observers."""
    common = "plan, p, statistics, k"
    return (
        _dispatch(
            "update_numeric",
            "plan, p, statistics, label, xs, weight",
            f"boolean({_STATISTICS}, {FLOATS}, float64)",
        ),
        _dispatch(
            "propose_numeric",
            f"{common}, start, end, candidates",
            f"void({_STATISTICS}, int64, int64, Candidates)",
        ),
        _dispatch("candidates_numeric", "plan, p"),
        _dispatch(
            "masses_numeric",
            f"{common}, position, value, left, right",
            f"void({_STATISTICS}, int64, float64, float64[::1], float64[::1])",
        ),
        _dispatch(
            "log_densities_numeric",
            f"{common}, xs, scratch, out",
            f"void({_STATISTICS}, {FLOATS}, {FLOATS}, {FLOATS})",
        ),
        _dispatch(
            "densities_numeric",
            f"{common}, xs, out",
            f"void({_STATISTICS}, {FLOATS}, {FLOATS})",
        ),
    )


def rough_dispatcher() -> Any:
    """Return ``propose_roughly`` over the numeric observers that have it."""
    return _dispatch(
        "propose_roughly",
        "plan, p, statistics, k, candidates",
        f"int64({_STATISTICS}, Candidates)",
        needed_by=registry.no_plugin,
    )


def nominal_dispatcher() -> tuple[Any, ...]:
    """Return update, masses, may be multiway, log densities and densities over the nominal observers."""
    return (
        _dispatch("update_nominal", "plan, p, statistics, label, x, weight"),
        _dispatch("masses_nominal", "plan, statistics, k, start, end, out"),
        _dispatch("may_be_multiway", "plan, p, values", needed_by=_is_nominal),
        _dispatch("log_densities_nominal", "plan, p, statistics, k, x, scratch, out"),
        _dispatch(
            "densities_nominal",
            "plan, p, statistics, k, x, out",
            f"void({_STATISTICS}, {FLOATS}, {FLOATS})",
        ),
    )


def problem_dispatcher() -> tuple[Any, Any]:
    """Return ``problem(kind, …)`` over all observers, ``problem_shared(kind, …)`` over the numeric ones."""
    return (
        _dispatch("problem", "plan, p, statistics, k", f"int64({_STATISTICS})", otherwise=0),
        _dispatch("problem_shared", "plan, p, model", "int64(PlanRecord, Words, ModelHeader)", otherwise=0),
    )
