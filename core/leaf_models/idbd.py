"""Linear units at a leaf, one for each class, which learn a step size for each input (IDBD)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from core.kernels.jit import kernel, part
from core.kernels.records import Words
from core.layout.learning import NO_CLASS, Row, Work
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.leaf_models import mc
from core.leaf_models.base import LeafModel
from core.leaf_models.nb import normalise
from core.numeric.idbd import START, idbd_output, idbd_step, idbd_tune
from core.numeric.moments import deviation, standard_score
from core.observers.nominal import code_of
from core.tree.statistics import is_active

# Rows of the section "scale", and of a unit
WEIGHT: Final = 0
MEAN: Final = 1
M2: Final = 2
SCALE_ROWS: Final = 3
STEPS: Final = 1  # β
TRACES: Final = 2
UNIT_ROWS: Final = 3

KEPT: Final = 30.0
"""Weight of the parent's scale in a new leaf, whose unit weights were learned for that scale."""
MOST_STEPS: Final = 64
"""Largest number of steps in which a record of a large weight is learned."""

PROBLEMS: Final = ()


@dataclass(frozen=True, slots=True)
class Plugin(LeafModel):
    """A linear unit per class, with target 1 for the class and 0 else: ``"leaf_model": "idbd"``.

    Votes are the outputs (Sutton 1992), clipped to [0, 1] and normalised; if all are 0, the votes of ``mc``.
    Inputs: 1, the numeric attributes standardised by the leaf's mean and deviation before the record, and 1
    for the value of each nominal attribute; a missing value gives 0. A new leaf starts with weights and steps
    of its parent. A record of weight w is learned w times, in at most 64 steps, the last one smaller if w is
    not an integer.
    """

    axes: ClassVar[tuple[tuple[str | int, ...], ...]] = (
        (SCALE_ROWS, "attribute"),
        ("class", UNIT_ROWS),
        ("class", UNIT_ROWS, "attribute"),
        ("class", "value", UNIT_ROWS),
    )

    def clear(self, sections: Sequence[Any]) -> None:
        """Write zero weights, an empty scale, and the initial step size."""
        LeafModel.clear(self, sections)
        if sections:
            _, bias, numeric, nominal = sections
            bias[..., STEPS], numeric[..., STEPS, :], nominal[..., STEPS] = START, START, START

    def inherit(self, child: Sequence[Any], parent: Sequence[Any]) -> None:
        """Write the parent's units without traces, and its scale with the weight of a few records."""
        for new, old in zip(child, parent, strict=True):
            new[...] = old
        scale, bias, numeric, nominal = child
        bias[..., TRACES], numeric[..., TRACES, :], nominal[..., TRACES] = 0.0, 0.0, 0.0
        n = scale[WEIGHT].copy()
        scale[WEIGHT] = n.clip(max=KEPT)
        scale[M2, n > KEPT] *= KEPT / n[n > KEPT]


class Unit(NamedTuple):
    """The positions of the parts of a class's unit in the state of a leaf."""

    bias: int
    numeric: int
    """First word of the part of the numeric attributes: three rows [attribute]."""
    nominal: int
    """First word of the part of the values: three words for each value of a nominal attribute."""


@kernel
def state_of(plan: PlanRecord, leaf: Leaf) -> Words:
    """Return the state of a leaf: the sections of ``Plugin.axes``."""
    return Words(leaf.ints, leaf.floats, leaf.start + plan.leaf_model_state)


@kernel
def unit_of(plan: PlanRecord, c: int) -> Unit:
    """Return the positions of the unit of a class."""
    d = plan.numeric
    bias = SCALE_ROWS * d
    numeric = bias + UNIT_ROWS * plan.classes
    nominal = numeric + UNIT_ROWS * plan.classes * d
    return Unit(bias + UNIT_ROWS * c, numeric + UNIT_ROWS * d * c, nominal + UNIT_ROWS * plan.values * c)


@kernel
def write_inputs(plan: PlanRecord, state: Words, xs, inputs) -> None:
    """Write the inputs of the numeric attributes, and a 1 after them."""
    d, scale = plan.numeric, state.cells
    for a in range(d):
        n, mean, m2 = scale[a], scale[d + a], scale[2 * d + a]
        inputs[a] = standard_score(xs[a], mean, deviation(n, m2))
    inputs[d] = 1.0


@kernel
def widen_scale(plan: PlanRecord, state: Words, xs, weight: float) -> None:
    """Add the numeric attributes of a record to the scale."""
    d, scale = plan.numeric, state.cells
    for a in range(d):
        x = xs[a]
        if x - x == 0.0:
            n = scale[a] + weight
            delta = x - scale[d + a]
            mean = scale[d + a] + delta * (weight / n)
            scale[a], scale[d + a] = n, mean
            scale[2 * d + a] += weight * delta * (x - mean)


@kernel
def value_at(plan: PlanRecord, unit: Unit, j: int, x) -> int:
    """Return the position of the value of nominal attribute j, -1 if it is missing or unknown."""
    attribute = plan.nominal_column(j)
    code = code_of(x[attribute.column], attribute.room)
    return unit.nominal + UNIT_ROWS * (attribute.first + code) if code >= 0 else -1


@kernel
def output(plan: PlanRecord, state: Words, c: int, x, inputs) -> float:
    """Return the output of a class's unit for a record whose inputs are written."""
    d, unit = plan.numeric, unit_of(plan, c)
    bias_input = part(inputs, d, 1)
    total = idbd_output(state.cells, unit.bias, bias_input, 1) + idbd_output(
        state.cells, unit.numeric, inputs, d
    )
    for j in range(plan.nominal):
        value = value_at(plan, unit, j, x)
        if value >= 0:
            total += idbd_output(state.cells, value, bias_input, 1)
    return total


@kernel
def learn_unit(plan: PlanRecord, state: Words, c: int, x, inputs, target: float, share: float) -> None:
    """Let the unit of a class learn a record whose inputs are written."""
    d, unit, cells = plan.numeric, unit_of(plan, c), state.cells
    bias_input = part(inputs, d, 1)
    delta = target - output(plan, state, c, x, inputs)
    reach = idbd_tune(cells, unit.bias, bias_input, 1, delta, share)
    reach += idbd_tune(cells, unit.numeric, inputs, d, delta, share)
    for j in range(plan.nominal):
        value = value_at(plan, unit, j, x)
        if value >= 0:
            reach += idbd_tune(cells, value, bias_input, 1, delta, share)
    idbd_step(cells, unit.bias, bias_input, 1, delta, share, reach)
    idbd_step(cells, unit.numeric, inputs, d, delta, share, reach)
    for j in range(plan.nominal):
        value = value_at(plan, unit, j, x)
        if value >= 0:
            idbd_step(cells, value, bias_input, 1, delta, share, reach)


@kernel
def votes(plan: PlanRecord, p, tree: Tree, node: Node, row: Row, scratch, out) -> tuple[int, int]:
    """Write the normalised outputs of the units; among equal outputs the first class wins."""
    best, hint = mc.votes(plan, p, tree, node, row, scratch, out)
    if not is_active(node):
        return best, hint
    k, state = tree.model.classes, state_of(plan, tree.leaf_of(node))
    write_inputs(plan, state, row.xs, scratch)
    outputs, total, highest = part(scratch, plan.numeric + 1, k), 0.0, 0
    for c in range(k):
        outputs[c] = min(max(output(plan, state, c, row.x, scratch), 0.0), 1.0)
        total += outputs[c]
        if outputs[c] > outputs[highest]:
            highest = c
    if not total > 0.0:
        return best, hint
    for c in range(k):
        out[c] = outputs[c]
    normalise(out, k)
    return highest, hint


@kernel
def account(plan: PlanRecord, p, tree: Tree, node: Node, row: Row, hint: int, work: Work) -> int:
    """Let all units learn the record, then the scale."""
    predicted = NO_CLASS
    if plan.judges != 0:
        for c in range(tree.model.classes):
            work.votes[c] = 0.0
        predicted, _ = votes(plan, p, tree, node, row, work.scratch, work.votes)
    state = state_of(plan, tree.leaf_of(node))
    inputs = work.scratch
    k, weight_left = max(tree.model.classes, row.label + 1), row.weight
    for _ in range(MOST_STEPS):
        if weight_left <= 0.0:
            break
        share = min(weight_left, 1.0)
        write_inputs(plan, state, row.xs, inputs)
        for c in range(k):
            learn_unit(plan, state, c, row.x, inputs, 1.0 if c == row.label else 0.0, share)
        widen_scale(plan, state, row.xs, share)
        weight_left -= share
    if weight_left > 0.0:
        widen_scale(plan, state, row.xs, weight_left)
    return predicted
