"""What a change of the drift detector's level does to the trees (ALGORITHMS section 10).

A warning starts a background tree, which learns beside the main tree while the warning lasts. A drift puts
it in the main tree's place. Back in control it is of no use: it is dropped, so that a drift without a
warning begins with a new tree [D24]. MOA keeps it until the next warning, and such a drift puts a stale
tree in place.
"""

from __future__ import annotations

from core import arena
from core.arena import Block
from core.drift.base import DRIFT, LEVELS, WARNING
from core.events import Action, Drift
from core.model import Model
from core.tree import layout as at


def react(model: Model, row: int, index: int) -> Drift:
    """Act on the level that the model's detector has come to, and say what was done."""
    ints = model.ints
    level = int(ints[at.MODEL_LEVEL])
    main, *background = arena.blocks(ints)
    moa = bool(model.plan.ints[at.PLAN_MOA])
    action: Action = "none"
    if level == DRIFT:
        ints[at.MODEL_REBUILDS] += 1
        action = "background tree took over" if background else "new tree"
        lay_out(model, background or [arena.NEW_TREE])
    elif level == WARNING:
        if not background or ints[at.MODEL_BACKGROUND_STALE]:
            action = "background tree started"
            lay_out(model, [main, arena.NEW_TREE])
        model.ints[at.MODEL_BACKGROUND_STALE] = 0
    elif moa:
        ints[at.MODEL_BACKGROUND_STALE] = 1
    elif background:
        action = "background tree dropped"
        lay_out(model, [main])
    state = int(model.plan.ints[at.PLAN_DETECTOR])
    return Drift(
        row=row,
        model=index,
        level=LEVELS[level],
        detector=model.spec.drift.name,
        error_rate=model.spec.drift.error_rate(model.floats[state:]),
        action=action,
    )


def lay_out(model: Model, trees: list[Block]) -> None:
    """Give the model a buffer with these trees."""
    model.use(arena.relayout(model.plan, model.ints, model.plan, trees))
