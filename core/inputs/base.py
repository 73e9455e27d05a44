"""Input detectors: compare the distribution of a model's inputs with that of earlier inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from core import registry
from core.kernels.jit import kernel
from core.layout.plan import PlanRecord
from core.plugin import Parameters, count, number
from core.schema.dimensions import Dimensions


@dataclass(frozen=True, slots=True)
class InputDetector(Parameters):
    """Watches the records that a model answers, with and without labels.

    A spec names it in the list ``drift``, beside the detector of errors. Its state begins with an
    ``InputState`` (core/layout/inputs.py) and is all zeros in a new model. The state of an attribute that the
    schema takes in later is all zeros too, as if it had been missing before.

    The module has two kernels, which get the parameters by name (``p.window``). ``take(plan, p, state, x,
    shares, predicted) -> int`` counts a record after its answer: x: float64[column], shares: float64[class],
    the published probabilities, predicted: the class of the answer or -1; the result is 0. ``end_phase(plan,
    p, state) -> int`` is called before a record if ``records`` of the state has reached ``ends``; it returns
    1 if the inputs have changed. ``problem(plan, p, state) -> int`` returns the number of a sentence if the
    state is invalid (core/plugin.py).
    """

    family: ClassVar[str] = "inputs"

    open_records: int = count(0, at_most=1_000_000)
    """Records after an alarm whose labels are requested although the budget is closed; 0: none."""
    open_share: float = number(1.0, above=0.0, at_most=1.0)
    """Share of these records whose label is requested, at random."""

    def words(self, dims: Dimensions) -> int:
        """Return the words of the state of a model with these dimensions."""
        return 0


OpenBudget: Any = InputDetector.record()
"""The record of the parameters that all input detectors have; they come first."""


@kernel
def open_share(plan: PlanRecord) -> float:
    """Return the share of the labels that are requested after an alarm."""
    share: float = OpenBudget(plan.ints, plan.floats, plan.inputs_at).open_share
    return share


_TYPES = "PlanRecord, Words, InputState"


def dispatcher() -> tuple[Any, Any]:
    """Return ``take(kind, …)`` and ``end_phase(kind, …)`` over all input detectors."""
    return (
        registry.dispatch(
            "inputs",
            "take",
            "plan, p, state, x, shares, predicted",
            signature=f"int64({_TYPES}, CPointer(float64), CPointer(float64), int64)",
            inline=("none",),
        ),
        registry.dispatch(
            "inputs", "end_phase", "plan, p, state", signature=f"int64({_TYPES})", inline=("none",)
        ),
    )


def problem_dispatcher() -> Any:
    """Return ``problem(kind, …)`` over the input detectors that have a state."""
    return registry.dispatch("inputs", "problem", "plan, p, state", otherwise=0, signature=f"int64({_TYPES})")
