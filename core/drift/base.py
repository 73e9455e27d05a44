"""Drift detectors: one number a labelled record (1 = the prediction was wrong), one level back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core import registry
from core.kernels.jit import FLOATS
from core.plugin import Parameters, choice

IN_CONTROL: Final = 0
WARNING: Final = 1
DRIFT: Final = 2

LEVELS: Final = ("in-control", "warning", "drift")


@dataclass(frozen=True, slots=True)
class Detector(Parameters):
    """Watches the errors of predictions made before training.

    The module's kernel ``update(params, at, floats, state, error) -> level`` gets the parameters at
    ``params[at:]`` and the state at ``floats[state:]``. ``initial`` gives the state of a new model. After a
    drift a detector forgets at its next input, so that the alarm can be read (ADWIN keeps what is new).
    ``problem(params, at, floats, state) -> int`` says what is wrong with the state (core/plugin.py).

    Detectors follow their papers and agree with River. Where MOA's differ ``compat="moa"`` gives those; it is
    a parameter of the detector alone, whatever the learner's ``compat`` is [D68].

    ``reaction`` says what a change of level does to the trees (core/model/drift_reaction.py): ``rebuild``
    trains a background tree from the warning on, which takes over at the drift; ``reset`` begins a new tree
    at the drift; ``alert`` only says it.
    """

    family: ClassVar[str] = "drift"

    reaction: str = choice("rebuild", "rebuild", "reset", "alert")
    """What a drift does: a background tree takes over, a new tree begins, or nothing but the alert."""

    def initial(self) -> tuple[float, ...]:
        """Return the state of a new model."""
        return ()

    def error_rate(self, state: Any) -> float:
        """Return the error rate the detector believes in (state: float64[n])."""
        return 0.0


def dispatcher() -> Any:
    """Return ``update(kind, …)`` over all detectors."""
    return registry.dispatch(
        "drift",
        "update",
        "params, at, floats, state, error",
        signature=f"int64({FLOATS}, int64, {FLOATS}, int64, float64)",
        inline=("none",),
    )


def problem_dispatcher() -> Any:
    """Return ``problem(kind, …)`` over all detectors."""
    signature = f"int64({FLOATS}, int64, {FLOATS}, int64)"
    return registry.dispatch(
        "drift", "problem", "params, at, floats, state", otherwise=0, signature=signature
    )
