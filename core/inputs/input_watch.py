"""Input watch: the part of the compiled loop that compares the inputs of a model with earlier ones."""

from __future__ import annotations

from core.inputs import base as inputs
from core.kernels.jit import kernel
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord

take_input, end_phase = inputs.dispatcher()


@kernel
def have_changed(plan: PlanRecord, model: ModelHeader) -> bool:
    """Return whether a window of inputs is full and differs from the reference."""
    if plan.input_words == 0:
        return False
    state = model.input_state(plan)
    if state.records < state.ends:
        return False
    return end_phase(plan.inputs, plan, plan.parameters(plan.inputs_at), state) != 0


@kernel
def take(plan: PlanRecord, model: ModelHeader, x, shares, predicted: int) -> None:
    """Count a record after its answer; x: float64[column], shares: float64[class], published."""
    if plan.input_words != 0:
        p, state = plan.parameters(plan.inputs_at), model.input_state(plan)
        take_input(plan.inputs, plan, p, state, x, shares, predicted)
