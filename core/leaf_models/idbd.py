"""Linear units at a leaf, one for each class, which learn a step size for each input (IDBD)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.kernels.jit import kernel, part
from core.leaf_models import mc
from core.leaf_models.base import LeafModel
from core.leaf_models.nb import normalise
from core.numeric.idbd import START, idbd_output, idbd_step, idbd_tune
from core.numeric.moments import deviation, standard_score
from core.observers.nominal import code_of
from core.tree import layout as at
from core.tree.byoffset.routing import leaf_at
from core.tree.byoffset.statistics import is_active

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

    Votes are the outputs (Sutton 1992; ALGORITHMS section 22.5), clipped to [0, 1] and normalised; if all are
    0, the votes of ``mc``. Inputs: 1, the numeric attributes standardised by the leaf's mean and deviation
    before the record, and 1 for the value of each nominal attribute; a missing value gives 0. A new leaf
    starts with weights and steps of its parent. A record of weight w is learned w times, in at most 64 steps,
    the last one smaller if w is not an integer.
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


@kernel
def unit_at(plan, leaf: int, c: int) -> tuple[int, int, int]:
    """Return the first words of the three parts of a class's unit: bias, numeric attributes, values."""
    d, values, classes = plan[at.PLAN_NUMERIC], plan[at.PLAN_VALUES], plan[at.PLAN_CLASSES]
    bias = leaf + plan[at.PLAN_LEAF_MODEL_AT] + SCALE_ROWS * d
    numeric = bias + UNIT_ROWS * classes
    nominal = numeric + UNIT_ROWS * classes * d
    return bias + UNIT_ROWS * c, numeric + UNIT_ROWS * d * c, nominal + UNIT_ROWS * values * c


@kernel
def write_inputs(plan, floats, leaf: int, xs, scratch) -> None:
    """Write the inputs of the numeric attributes, and a 1 after them."""
    d = plan[at.PLAN_NUMERIC]
    scale = leaf + plan[at.PLAN_LEAF_MODEL_AT]
    for a in range(d):
        n, mean, m2 = floats[scale + a], floats[scale + d + a], floats[scale + 2 * d + a]
        scratch[a] = standard_score(xs[a], mean, deviation(n, m2))
    scratch[d] = 1.0


@kernel
def widen_scale(plan, floats, leaf: int, xs, weight: float) -> None:
    """Add the numeric attributes of a record to the scale."""
    d = plan[at.PLAN_NUMERIC]
    scale = leaf + plan[at.PLAN_LEAF_MODEL_AT]
    for a in range(d):
        x = xs[a]
        if x - x == 0.0:
            n = floats[scale + a] + weight
            delta = x - floats[scale + d + a]
            mean = floats[scale + d + a] + delta * (weight / n)
            floats[scale + a], floats[scale + d + a] = n, mean
            floats[scale + 2 * d + a] += weight * delta * (x - mean)


@kernel
def value_at(plan, nominal: int, j: int, x) -> int:
    """Return the position in a unit of the value of nominal attribute j, -1 if it is missing or unknown."""
    entry = plan[at.PLAN_NOMINAL_TABLE] + j * at.NOMINAL_FIELDS
    code = code_of(x[plan[entry + at.NOMINAL_COLUMN]], plan[entry + at.NOMINAL_ROOM])
    return nominal + UNIT_ROWS * (plan[entry + at.NOMINAL_FIRST] + code) if code >= 0 else -1


@kernel
def output(plan, floats, leaf: int, c: int, x, inputs) -> float:
    """Return the output of a class's unit for a record whose inputs are written."""
    d = plan[at.PLAN_NUMERIC]
    bias, numeric, nominal = unit_at(plan, leaf, c)
    one = part(inputs, d, 1)
    total = idbd_output(floats, bias, one, 1) + idbd_output(floats, numeric, inputs, d)
    for j in range(plan[at.PLAN_NOMINAL]):
        value = value_at(plan, nominal, j, x)
        if value >= 0:
            total += idbd_output(floats, value, one, 1)
    return total


@kernel
def learn_unit(plan, floats, leaf: int, c: int, x, inputs, target: float, share: float) -> None:
    """Let the unit of a class learn a record whose inputs are written."""
    d = plan[at.PLAN_NUMERIC]
    bias, numeric, nominal = unit_at(plan, leaf, c)
    one = part(inputs, d, 1)
    delta = target - output(plan, floats, leaf, c, x, inputs)
    reach = idbd_tune(floats, bias, one, 1, delta, share)
    reach += idbd_tune(floats, numeric, inputs, d, delta, share)
    for j in range(plan[at.PLAN_NOMINAL]):
        value = value_at(plan, nominal, j, x)
        if value >= 0:
            reach += idbd_tune(floats, value, one, 1, delta, share)
    idbd_step(floats, bias, one, 1, delta, share, reach)
    idbd_step(floats, numeric, inputs, d, delta, share, reach)
    for j in range(plan[at.PLAN_NOMINAL]):
        value = value_at(plan, nominal, j, x)
        if value >= 0:
            idbd_step(floats, value, one, 1, delta, share, reach)


@kernel
def votes(plan, params, ints, floats, t: int, node: int, x, xs, scratch, out) -> tuple[int, int]:
    """Write the normalised outputs of the units; among equal outputs the first class wins."""
    best, leaf_hint = mc.votes(plan, params, ints, floats, t, node, x, xs, scratch, out)
    if not is_active(ints, node):
        return best, leaf_hint
    k, d = ints[at.MODEL_CLASSES], plan[at.PLAN_NUMERIC]
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    write_inputs(plan, floats, leaf, xs, scratch)
    outputs, total, highest = part(scratch, d + 1, k), 0.0, 0
    for c in range(k):
        outputs[c] = min(max(output(plan, floats, leaf, c, x, scratch), 0.0), 1.0)
        total += outputs[c]
        if outputs[c] > outputs[highest]:
            highest = c
    if not total > 0.0:
        return best, leaf_hint
    for c in range(k):
        out[c] = outputs[c]
    normalise(out, k)
    return highest, leaf_hint


@kernel
def account(
    plan,
    params,
    ints,
    floats,
    t: int,
    node: int,
    x,
    xs,
    label: int,
    weight: float,
    leaf_hint: int,
    scratch,
    vote_buffer,
) -> None:
    """Let all units learn the record, then the scale."""
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    k, left = max(ints[at.MODEL_CLASSES], label + 1), weight
    for _ in range(MOST_STEPS):
        if left <= 0.0:
            break
        share = min(left, 1.0)
        write_inputs(plan, floats, leaf, xs, scratch)
        for c in range(k):
            learn_unit(plan, floats, leaf, c, x, scratch, 1.0 if c == label else 0.0, share)
        widen_scale(plan, floats, leaf, xs, share)
        left -= share
    if left > 0.0:
        widen_scale(plan, floats, leaf, xs, left)
