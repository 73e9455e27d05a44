"""Model buffers: making, growing and copying the array that is a model's whole state.

There is one way to change sizes, for any reason (more room in a block; a new class, value or attribute; a
block that is added or removed): lay out a new buffer and copy section by section. New parts are as if they
had been there from the beginning, so that the time of the change does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from core import evaluation
from core.conformal import conformal_sets
from core.kernels.records import offset
from core.layout.model import Block as BlockHeader
from core.layout.model import Floats, Ints, ModelHeader
from core.layout.published import CALIBRATION_HEAD
from core.learners.protocol import Room
from core.measures import sums
from core.model import numbers_seen
from core.plan import Plan
from core.tree import allocation

_WORDS, _FIRST = offset(ModelHeader, "words"), offset(ModelHeader, "first")
_BLOCK_WORDS: Final = offset(BlockHeader, "words")


def new_model(plan: Plan) -> Ints:
    """Return the buffer of a new model: one empty block."""
    room = plan.blocks.new_room
    start = int(plan.record.blocks)
    words = start + plan.blocks.words(room)
    ints = allocation.aligned_words(words)
    model = ModelHeader.over(ints)
    model.words = words
    model.first = start
    model.classes = plan.schema.declared_classes
    write_states(plan, ints.view(np.float64))
    write_declared_values(plan, ints)
    plan.blocks.plant(ints, start, room)
    return ints


def write_states(plan: Plan, floats: Floats) -> None:
    """Write the initial states of detector, query strategy, budget, calibrators and sets."""
    sections = plan.record
    for start, plugin in (
        (sections.detector_state, plan.spec.drift),
        (sections.query_state, plan.spec.query),
        (sections.budget_state, plan.spec.budget),
    ):
        state = plugin.initial()
        floats[start : start + len(state)] = state
    write_published(plan, floats)


def write_published(plan: Plan, floats: Floats) -> None:
    """Write the initial states of calibrators and sets."""
    write_calibration(plan, floats)
    if plan.record.conformal_words:
        conformal_sets.write_initial(floats, int(plan.record.conformal))


def write_calibration(plan: Plan, floats: Floats) -> None:
    """Write the initial states of the calibrators of all classes."""
    if plan.spec.calibration is not None:
        first, end = int(plan.record.calibration) + CALIBRATION_HEAD, int(plan.record.conformal)
        floats[first:end] = np.tile(plan.spec.calibration.initial(), plan.schema.n_classes)


def write_declared_values(plan: Plan, ints: Ints) -> None:
    """Count the declared values of the nominal attributes as seen."""
    seen = ModelHeader.over(ints).values_seen(plan.record)
    for j, attribute in enumerate(plan.values_index):
        seen[j] = plan.schema.declared_values[attribute]


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a new buffer: its first word in the old buffer (NEW: an empty block), and its room."""

    source: int
    room: Room


NEW: Final = -1


def new_block(plan: Plan) -> Block:
    """Return an empty block with its initial room."""
    return Block(NEW, plan.blocks.new_room)


def block_places(ints: Ints) -> list[int]:
    """Return the first words of a buffer's blocks; the first block answers."""
    places, place, words = [], ints.item(_FIRST), ints.item(_WORDS)
    while place < words:
        places.append(place)
        place += block_words(ints, place)
    return places


def block_words(ints: Ints, t: int) -> int:
    """Return the number of words of the block at word t, by its header."""
    return ints.item(t + _BLOCK_WORDS)


def blocks(plan: Plan, ints: Ints) -> list[Block]:
    """Return the blocks of a buffer with their room; the first block answers."""
    return [Block(t, plan.blocks.room(ints, t)) for t in block_places(ints)]


def relayout(old_plan: Plan, old: Ints, plan: Plan, chosen: list[Block]) -> Ints:
    """Return a new buffer with the state of an old one and these blocks; the plan's schema may have grown."""
    new = allocation.aligned_words(words_of(plan, chosen))
    lay_out(old_plan, old, plan, chosen, new)
    return new


def words_of(plan: Plan, chosen: list[Block]) -> int:
    """Return the size of a buffer with these blocks, in words."""
    return int(plan.record.blocks) + sum(plan.blocks.words(block.room) for block in chosen)


def lay_out(old_plan: Plan, old: Ints, plan: Plan, chosen: list[Block], new: Ints) -> None:
    """Fill ``new``, all zeros, with the state of an old buffer and these blocks (see ``relayout``)."""
    start = int(plan.record.blocks)
    sizes = [plan.blocks.words(block.room) for block in chosen]
    words = start + sum(sizes)
    new[: ModelHeader.SIZE] = old[: ModelHeader.SIZE]
    model = ModelHeader.over(new)
    model.words = words
    model.first = start
    model.second = start + sizes[0] if len(chosen) > 1 else 0
    _copy_sections(old_plan, old, plan, new)
    position = start
    for block, size in zip(chosen, sizes, strict=True):
        if block.source == NEW:
            plan.blocks.plant(new, position, block.room)
        else:
            plan.blocks.copy(old_plan.blocks, old, block.source, new, position, block.room)
        position += size


def may_extend(plan: Plan, ints: Ints, t: int) -> bool:
    """Return whether the block at word t can be extended in place: it is the last block."""
    return plan.blocks.extends and t + block_words(ints, t) == len(ints)


def extend(plan: Plan, ints: Ints, whole: Ints, t: int, room: Room) -> Ints | None:
    """Extend the last block in place and return the buffer; None: a new layout is necessary.

    whole: the buffer's words and zeros after them.
    """
    if not may_extend(plan, ints, t):
        return None
    words, had = t + plan.blocks.words(room), plan.blocks.room(ints, t)
    # Near its limit a tree may give up some room of one kind for more room of another.
    if words > len(whole) or any(now < before for now, before in zip(room, had, strict=True)):
        return None
    new = whole[:words]
    ModelHeader.over(new).words = words
    plan.blocks.extend(new, t, room)
    return new


def _copy_sections(old_plan: Plan, old: Ints, plan: Plan, new: Ints) -> None:
    """Copy everything except the blocks: states of plug-ins, evaluation, seen and shared words.

    The state of a strategy or budget that has changed starts from its initial value
    (``Parameters.continues``).
    """
    before, now = old_plan.record, plan.record
    if old_plan is plan:
        new[ModelHeader.SIZE : now.blocks] = old[ModelHeader.SIZE : now.blocks]
        return
    write_states(plan, new.view(np.float64))
    for source, old_plugin, target, plugin in (
        (before.detector_state, old_plan.spec.drift, now.detector_state, plan.spec.drift),
        (before.query_state, old_plan.spec.query, now.query_state, plan.spec.query),
        (before.budget_state, old_plan.spec.budget, now.budget_state, plan.spec.budget),
    ):
        if plugin.continues(old_plugin):
            size = len(plugin.initial())
            new[target : target + size] = old[source : source + size]
    evaluation.repack(old_plan, old, plan, new)
    write_declared_values(plan, new)
    n = len(old_plan.values_index)
    new[now.values_seen :][:n] = old[before.values_seen :][:n]
    numbers_seen.copy(old_plan, old, plan, new)
    if before.measure_words and now.measure_words:
        part, new_part = (
            words[record.measures : record.curve].view(np.float64)
            for words, record in ((old, before), (new, now))
        )
        sums.repack(old_plan.schema.n_classes, part, plan.schema.n_classes, new_part)
    if before.curve_words and now.curve_words:
        new[now.curve : now.inputs_state] = old[before.curve : before.inputs_state]
    elif now.curve_words:
        ModelHeader.over(new).interval_end = 0  # the next label begins the curve
    if before.input_words and plan.spec.inputs.continues(old_plan.spec.inputs):
        new[now.inputs_state :][: before.input_words] = old[before.inputs_state : before.calibration]
    _copy_published(old_plan, old, plan, new)
    n = int(before.blocks - before.shared)
    new[now.shared :][:n] = old[before.shared :][:n]


def _copy_published(old_plan: Plan, old: Ints, plan: Plan, new: Ints) -> None:
    """Copy the states of calibrators and sets; what has no state yet has its initial one already."""
    before, now = old_plan.record, plan.record
    calibrator, earlier = plan.spec.calibration, old_plan.spec.calibration
    if calibrator is not None and earlier is not None and calibrator.continues(earlier):
        size = int(before.calibration_words)
        new[now.calibration :][:size] = old[before.calibration :][:size]
    if before.conformal_words and now.conformal_words:
        new[now.conformal : now.shared] = old[before.conformal : before.shared]
        if plan.spec.conformal != old_plan.spec.conformal:
            conformal_sets.begin_again(new, int(now.conformal))
