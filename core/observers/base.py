"""Attribute observers: the statistics of a leaf, per kind of attribute.

A *numeric* observer handles all numeric attributes of a leaf at once, a *nominal* observer all nominal
attributes; a tree has one of each. The statistics are a run of words in the leaf record with a shape from the
axes "class", "attribute" (numeric attributes) and "value" (values of all nominal attributes, one after
another).

Kernels of a module (``at``: first word of the leaf's statistics; ``k``: number of known classes):

numeric  ``update_numeric(plan, params, floats, at, label, xs, weight) -> bool``
            returns whether the record's known values were all added to the statistics; if not, the bound does
            not count the record's weight (LEAF_LEFT_OUT)
         ``candidates_numeric(plan, params) -> int``: number of proposed thresholds per attribute
         ``propose_numeric(plan, params, floats, at, k, start, end, left, right, value)``
            writes, for the numeric attributes start … end-1, class masses on both sides of each candidate to
            ``left``/``right`` (float64[class, column], column = (attribute - start)·candidates + candidate)
            and the thresholds to ``value`` (NaN: no candidate)
         ``propose_roughly(plan, params, floats, at, k, left, right, value) -> int`` (optional) does the same
            with an error of at most 1e-6 of the weight, side by side, for all attributes with a candidate and
            maybe more; returns the number of these attributes
         ``masses_numeric(plan, params, floats, at, k, position, value, left, right)``
            writes the class masses on both sides of one threshold (float64[class]); -1 marks a class that
            never reached a side
         ``log_densities_numeric(plan, params, floats, at, k, xs, scratch, out)`` adds ln f(x_a | c) of all
            attributes to out[c]; minus infinity stays (scratch: four words an attribute, two a class)
         ``densities_numeric(plan, params, floats, at, k, xs, out)`` multiplies by the densities (MOA)
         ``problem(plan, params, floats, at, k) -> int`` returns the number of the sentence in PROBLEMS that
            applies to a leaf's statistics, 0: none (core/plugin.py)
         ``problem_shared(plan, params, floats) -> int`` the same for the words that leaves share
nominal  ``update_nominal(plan, params, ints, floats, at, label, x, weight)``
         ``masses_nominal(plan, floats, at, k, start, end, out)`` writes the class masses of the values
            start … end-1 to float64[class, value - start]
         ``may_be_multiway(plan, params, values) -> bool``: whether an attribute with this number of values
            may get a branch per value
         ``log_densities_nominal``, ``densities_nominal`` as above with ``ints`` and the whole record
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.kernels.jit import FLOATS, INTS, WORDS
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
        """Return the number of words that all leaves share, at PLAN_SHARED; new words are zeros.

        More attributes add words at the end.
        """
        return 0

    def shape(self, classes: int, attributes: int, values: int) -> tuple[int, ...]:
        sizes = {"class": classes, "attribute": attributes, "value": values} | self.sizes()
        return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in self.axes)

    def clear(self, statistics: Any) -> None:
        """Write the statistics of an empty leaf (float64[…, shape])."""
        statistics[...] = 0.0


def _dispatch(function: str, parameters: str, signature: str, otherwise: int | None = None) -> Any:
    return registry.dispatch("observers", function, parameters, otherwise, signature)


def numeric_dispatcher() -> tuple[Any, ...]:
    """Return update, propose, candidates, masses, log densities and densities over the numeric observers."""
    common, types = "plan, params, floats, at, k", f"{INTS}, {FLOATS}, {FLOATS}, int64, int64"
    candidates = f"void({types}, int64, int64, float64[:, ::1], float64[:, ::1], float64[::1])"
    return (
        _dispatch(
            "update_numeric",
            "plan, params, floats, at, label, xs, weight",
            f"boolean({types}, {FLOATS}, float64)",
        ),
        _dispatch("propose_numeric", f"{common}, start, end, left, right, value", candidates),
        registry.dispatch("observers", "candidates_numeric", "plan, params"),
        _dispatch(
            "masses_numeric",
            f"{common}, position, value, left, right",
            f"void({types}, int64, float64, float64[::1], float64[::1])",
        ),
        _dispatch(
            "log_densities_numeric",
            f"{common}, xs, scratch, out",
            f"void({types}, {FLOATS}, {FLOATS}, {FLOATS})",
        ),
        _dispatch("densities_numeric", f"{common}, xs, out", f"void({types}, {FLOATS}, {FLOATS})"),
    )


def rough_dispatcher() -> Any:
    """Return ``propose_roughly`` over the numeric observers that have it."""
    parameters = "plan, params, floats, at, k, left, right, value"
    signature = (
        f"int64({INTS}, {FLOATS}, {FLOATS}, int64, int64, float64[:, ::1], float64[:, ::1], float64[::1])"
    )
    return _dispatch("propose_roughly", parameters, signature)


def nominal_dispatcher() -> tuple[Any, ...]:
    """Return update, masses, may be multiway, log densities and densities over the nominal observers."""
    common, types = "plan, params, ints, floats, at, k", f"{WORDS}, int64, int64"
    return (
        registry.dispatch("observers", "update_nominal", "plan, params, ints, floats, at, label, x, weight"),
        registry.dispatch("observers", "masses_nominal", "plan, floats, at, k, start, end, out"),
        registry.dispatch("observers", "may_be_multiway", "plan, params, values"),
        registry.dispatch("observers", "log_densities_nominal", f"{common}, x, scratch, out"),
        _dispatch("densities_nominal", f"{common}, x, out", f"void({types}, {FLOATS}, {FLOATS})"),
    )


def problem_dispatcher() -> tuple[Any, Any]:
    """Return ``problem(kind, …)`` and ``problem_shared(kind, …)`` over the numeric observers."""
    return (
        _dispatch(
            "problem",
            "plan, params, floats, at, k",
            f"int64({INTS}, {FLOATS}, {FLOATS}, int64, int64)",
            otherwise=0,
        ),
        _dispatch(
            "problem_shared", "plan, params, floats", f"int64({INTS}, {FLOATS}, {FLOATS})", otherwise=0
        ),
    )
