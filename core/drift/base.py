"""Drift detectors: take one number per labelled record (1 = the prediction was wrong), return a level."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core import registry
from core.errors import ParameterError
from core.kernels.jit import kernel
from core.kernels.records import Record, Words
from core.layout.model import Floats
from core.plugin import Parameters, choice

IN_CONTROL: Final = 0
WARNING: Final = 1
DRIFT: Final = 2

LEVELS: Final = ("in-control", "warning", "drift")


@dataclass(frozen=True, slots=True)
class Detector(Parameters):
    """Monitors the errors of predictions made before training.

    The module's kernel ``update(p, state, error) -> level`` gets the parameters by name (``p.warm_up``) and
    the state, for which the module declares a record. ``initial`` returns the state of a new model. After a
    drift a detector is reset at its next input, so that the alarm can be read (ADWIN keeps the newer part).
    ``problem(p, state) -> int`` returns the number of a sentence if the state is invalid (core/plugin.py).

    Detectors follow their papers and agree with River. Where MOA's formulas differ, ``compat="moa"`` selects
    them; it is a parameter of the detector, independent of the learner's ``compat`` [D68].

    ``reaction`` is the effect of a change of level on the trees (core/model/drift_reaction.py): ``rebuild``
    trains a background tree from the warning on, which replaces the tree at the drift; ``reset`` starts a new
    tree at the drift; ``alert`` only reports it.
    """

    family: ClassVar[str] = "drift"
    ASCENDING: ClassVar[tuple[str, ...]] = ()
    """Names of parameters each of which must be at most the next one."""

    reaction: str = choice("rebuild", "rebuild", "reset", "alert")
    """Effect of a drift: a background tree takes over, a new tree starts, or only an event is reported."""

    def __post_init__(self) -> None:
        """Check the parameters, separately and in their order."""
        Parameters.__post_init__(self)
        for lower, upper in itertools.pairwise(self.ASCENDING):
            least, most = getattr(self, lower), getattr(self, upper)
            if least > most:
                msg = f"{lower}={least} must be at most {upper}={most}"
                raise ParameterError(msg)

    def check_together(self) -> None:
        """Raise ParameterError for parameters with which the detector cannot do its work.

        Only specs that are not stored yet are checked: release 0.1.0 accepted all of them, and models that
        have them go on.
        """

    def initial(self) -> tuple[float, ...]:
        """Return the state of a new model."""
        return ()

    def error_rate(self, state: Floats) -> float:
        """Return the detector's estimate of the error rate; state: float64[n], its words."""
        return 0.0


@kernel
def clear(state: Record, words: int) -> None:
    """Write zeros to this number of words of a state."""
    cells = Words(state.ints, state.floats, state.start).cells
    for position in range(words):
        cells[position] = 0.0


def dispatcher() -> Any:
    """Return ``update(kind, …)`` over all detectors."""
    return registry.dispatch(
        "drift",
        "update",
        "p, state, error",
        signature="int64(Words, Words, float64)",
        inline=("none",),
    )


def problem_dispatcher() -> Any:
    """Return ``problem(kind, …)`` over all detectors."""
    return registry.dispatch(
        "drift",
        "problem",
        "p, state",
        otherwise=0,
        signature="int64(Words, Words)",
    )
