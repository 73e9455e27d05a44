"""Calibrators: learn from labels how often the class of a share came true, and correct the share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core import registry
from core.kernels.jit import kernel
from core.plugin import Parameters, count

MEMORY: Final = 5000
"""Labels after which an old label counts 1/e as much, by default."""


@dataclass(frozen=True, slots=True)
class Calibrator(Parameters):
    """Corrects the share of one class against all others.

    Each class has a state of its own, for which the module declares a record; ``initial`` returns the state
    of a new class. The module's kernel ``calibrated(p, state, share) -> float`` returns the probability of
    the class for a share from 0 to 1. ``learn(p, state, share, is_class, weight) -> int`` takes in a label:
    is_class is 1.0 for a label of this class, else 0.0; weight is the weight of the label relative to the
    mean weight (core/publishing/label_weights.py). It returns 0. ``problem(p, state) -> int`` returns the
    number of a sentence if the state is invalid (core/plugin.py).
    """

    family: ClassVar[str] = "calibrators"

    memory: int = count(MEMORY)
    """Labels after which an old label counts 1/e as much; 0: all labels count alike."""

    def initial(self) -> tuple[float, ...]:
        """Return the state of a class."""
        raise NotImplementedError


CalibratorParameters: Any = Calibrator.record()
"""The record of the parameters that all calibrators have; they are the first of each calibrator."""


@kernel
def kept(memory: float) -> float:
    """Return the factor of the weights of earlier labels at each label."""
    return 1.0 - 1.0 / memory if memory >= 1.0 else 1.0


@kernel
def remembered(memory: float, labels: int) -> float:
    """Return the number of labels that a calibrator remembers after it has learned ``labels`` labels."""
    return min(float(labels), memory) if memory >= 1.0 else float(labels)


def calibrated_dispatcher() -> Any:
    """Return ``calibrated(kind, …)`` over all calibrators."""
    return registry.dispatch(
        "calibrators", "calibrated", "p, state, share", signature="float64(Words, Words, float64)"
    )


def learn_dispatcher() -> Any:
    """Return ``learn(kind, …)`` over all calibrators."""
    return registry.dispatch(
        "calibrators",
        "learn",
        "p, state, share, is_class, weight",
        signature="int64(Words, Words, float64, float64, float64)",
    )


def problem_dispatcher() -> Any:
    """Return ``problem(kind, …)`` over all calibrators."""
    return registry.dispatch(
        "calibrators", "problem", "p, state", otherwise=0, signature="int64(Words, Words)"
    )
