"""Drift reaction: the effect of a detector's level on a model's blocks.

``reaction: rebuild``: a warning starts a background block (a tree, for learners of trees), which learns in
addition to the block that answers while the warning lasts. At a drift it replaces that block. When the
detector returns to in control, the background block is dropped, so that a drift without a warning starts with
a new block [D24]. MOA keeps it until the next warning, and such a drift installs a stale tree.

``reaction: reset``: at a drift a new block replaces the block that answers. ``reaction: alert``: the blocks
stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from core.conformal import conformal_sets
from core.drift.base import DRIFT, LEVELS, WARNING
from core.events import Action, Drift
from core.learning_curve.intervals import begin_after_drift
from core.model import buffers
from core.model.buffers import Block, new_block
from core.model.model import Model
from core.tree import quirks


def react(model: Model, row: int, index: int) -> Drift:
    """React to the new level of the model's detector; return an event with the action."""
    level = int(model.header.level)
    action = REACTIONS[model.spec.drift.reaction](model, level)
    if level == DRIFT:
        begin_after_drift(model.plan.record, model.header)
        conformal_sets.begin_after_drift(model.plan.record, model.header)
    state = int(model.plan.record.detector_state)
    return Drift(
        row=row,
        model=index,
        level=LEVELS[level],
        detector=model.spec.drift.name,
        error_rate=model.spec.drift.error_rate(model.floats[state:]),
        action=action,
    )


def rebuild(model: Model, level: int) -> Action:
    """Keep a background tree during a warning, and let it replace the tree at a drift."""
    main, *background = buffers.blocks(model.plan, model.ints)
    if level == DRIFT:
        model.header.rebuilds += 1
        lay_out(model, background or [new_block(model.plan)])
        forget_calibration(model)
        return "background tree took over" if background else "new tree"
    if level == WARNING:
        started = not background or bool(model.header.background_stale)
        if started:
            lay_out(model, [main, new_block(model.plan)])
        model.header.background_stale = 0
        return "background tree started" if started else "none"
    if model.plan.record.has(quirks.KEEPS_BACKGROUND):
        model.header.background_stale = 1
        return "none"
    return drop_background(model)


def reset(model: Model, level: int) -> Action:
    """Start a new tree at a drift."""
    if level == DRIFT:
        model.header.rebuilds += 1
        lay_out(model, [new_block(model.plan)])
        forget_calibration(model)
        return "new tree"
    return drop_background(model)


def alert(model: Model, level: int) -> Action:
    """Leave the tree as it is."""
    return drop_background(model)


def drop_background(model: Model) -> Action:
    """Remove a background tree, also one from before the reaction was reconfigured."""
    main, *background = buffers.blocks(model.plan, model.ints)
    if not background:
        return "none"
    lay_out(model, [main])
    return "background tree dropped"


REACTIONS: Final[dict[str, Callable[[Model, int], Action]]] = {
    "rebuild": rebuild,
    "reset": reset,
    "alert": alert,
}


def lay_out(model: Model, trees: list[Block]) -> None:
    """Give the model a buffer with these trees."""
    model.use(buffers.relayout(model.plan, model.ints, model.plan, trees))


def forget_calibration(model: Model) -> None:
    """Let the calibrators begin again: the shares of another tree mean something else."""
    section = model.plan.record
    model.ints[section.calibration : section.conformal] = 0
    buffers.write_calibration(model.plan, model.floats)
