"""Upgrade of a model's words: adds the words that snapshots of older state versions lack.

Version 9 added the sums of the measures per class (core/measures/sums.py) and the learning curve
(core/learning_curve/intervals.py). An older model starts with empty sums, and counts its records and labels
from the next ones on.

Version 8 added the steps of the attributes of a forest of ``ufft`` (core/learners/ufft/steps.py). An older
forest starts with no steps, and learns them from its next records on; its spec takes no share of them.

Version 7 added the numbers that a model with ``explain`` has seen (core/model/numbers_seen.py). An older
model starts with none, and takes in numbers from its next record on.

Version 6 added the hits of two baselines to the evaluation (core/evaluation.py). In an older model the order
of labels is known only within its window: the baselines are counted over these labels and the labels that
follow; earlier labels are left out of the comparison.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from core.evaluation import section_of
from core.kernels.records import offset, row_type, rows
from core.layout.model import (
    ACTUAL,
    EVALUATION_ROWS,
    HIT,
    WINDOW,
    Block,
    EvaluationCounters,
    Ints,
    ModelHeader,
    evaluation_words,
)
from core.learners.ufft.blocks import UfftLayout
from core.learners.ufft.layout import STEP_FIELDS, AttributeStep
from core.model import buffers
from core.plan import Plan
from core.state_version import MEASURES_SINCE
from core.tree import allocation

STEPS_SINCE: Final = 8
NUMBERS_SEEN_SINCE: Final = 7
BASELINES_SINCE: Final = 6
_FIRST: Final = offset(ModelHeader, "first")
FIELDS_OF_5: Final = 10
"""Counters of the evaluation section up to version 5."""


def upgraded(plan: Plan, words: Ints, state: int) -> Ints:
    """Return the words of a snapshot in the layout of this state version; invalid words stay invalid."""
    if state < BASELINES_SINCE:
        words = _with_baselines(plan, words)
    if state < NUMBERS_SEEN_SINCE:
        words = _with_section(words, int(plan.record.numbers_seen), int(plan.record.measures))
    if state < MEASURES_SINCE:
        words = _with_section(words, int(plan.record.measures), int(plan.record.inputs_state))
    elif _is_without_curve(plan, words):
        words = _with_section(words, int(plan.record.curve), int(plan.record.inputs_state))
    is_without_steps = state < STEPS_SINCE and isinstance(plan.blocks, UfftLayout)
    return _with_steps(plan, words) if is_without_steps else words


def _is_without_curve(plan: Plan, words: Ints) -> bool:
    """Return whether words of version 9 come from a build before it had the learning curve."""
    blocks = int(plan.record.blocks) - int(plan.record.curve_words)
    return len(words) > ModelHeader.SIZE and words.item(_FIRST) == blocks


def _with_steps(plan: Plan, old: Ints) -> Ints:
    """Return words whose forests have empty steps; return ``old`` if its blocks cannot be the plan's."""
    blocks = plan.blocks
    steps = allocation.aligned_words(blocks.step_words)
    rows(steps, row_type(AttributeStep, STEP_FIELDS)).last = math.nan
    start = int(plan.record.blocks)
    parts: list[Ints] = [old[:start]]
    starts: list[int] = []
    while start < len(old):
        size = buffers.block_words(old, start)
        if not blocks.steps_at <= size <= len(old) - start:
            return old
        starts.append(start + len(starts) * len(steps))
        parts += [old[start : start + blocks.steps_at], steps, old[start + blocks.steps_at : start + size]]
        start += size
    new = allocation.aligned_words(len(old) + len(starts) * len(steps))
    np.concatenate(parts, out=new)
    model = ModelHeader.over(new)
    for block in starts:
        Block(new, model.floats, block).words += len(steps)
    model.words += len(new) - len(old)
    if model.second:
        model.second += len(steps)
    return new


def _with_section(old: Ints, start: int, end: int) -> Ints:
    """Return words with an empty section from ``start`` to before ``end``."""
    if start == end or len(old) < start:
        return old  # the plan has no such section, or the words are too short for any model of it
    new = allocation.aligned_words(len(old) + end - start)
    new[:start], new[end:] = old[:start], old[start:]
    _move_blocks(new, end - start)
    return new


def _move_blocks(ints: Ints, added: int) -> None:
    """Move the places of blocks by the size of the added section."""
    places = [offset(ModelHeader, name) for name in ("words", "first", "second")]
    ints[places] += added * (ints[places] != 0)  # an array: foreign words may overflow


def _with_baselines(plan: Plan, old: Ints) -> Ints:
    """Return words whose evaluation section has baselines; later sections move back."""
    k, size = plan.schema.n_classes, int(plan.record.window)
    section, bits = int(plan.record.evaluation), int(plan.record.window_bits)
    more = EvaluationCounters.SIZE - FIELDS_OF_5
    end = section + evaluation_words(k, size)
    added = more + end - bits
    if len(old) < end - added:
        return old  # too short for any model of the plan
    new = allocation.aligned_words(len(old) + added)
    new[: section + FIELDS_OF_5] = old[: section + FIELDS_OF_5]
    new[section + EvaluationCounters.SIZE : bits] = old[section + FIELDS_OF_5 : bits - more]
    new[end:] = old[bits - more :]
    _move_blocks(new, added)
    judged = int(section_of(plan, new).count)
    labels = _labels(plan, new, min(judged, size))
    if judged > 0 and (labels < k).all():
        _compare(plan, new, labels.tolist(), judged)
    return new


def _labels(plan: Plan, ints: Ints, inside: int) -> Ints:
    """Return the labels in the window, the oldest first, int64[inside]."""
    bits = int(plan.record.code_bits)
    codes = section_of(plan, ints).counts[EVALUATION_ROWS * plan.schema.n_classes :]
    position = _positions(plan, ints, inside)
    pairs = codes[position // (32 // bits)] >> (2 * bits * (position % (32 // bits)))
    labels: Ints = pairs & ((1 << bits) - 1)
    return labels


def _positions(plan: Plan, ints: Ints, inside: int) -> Ints:
    """Return the positions in the window of its records, the oldest first."""
    size = int(plan.record.window)
    first = int(section_of(plan, ints).next) if inside == size else 0
    positions: Ints = (first + np.arange(max(inside, 0), dtype=np.int64)) % size
    return positions


def _compare(plan: Plan, ints: Ints, labels: list[int], judged: int) -> None:
    """Count the baselines over the labels of the window, with the counts of labels at that time."""
    k = plan.schema.n_classes
    section, bits = section_of(plan, ints), int(plan.record.window_bits)
    rows = section.counts[: EVALUATION_ROWS * k].reshape(EVALUATION_ROWS, k)
    recent = [0] * k
    label_counts = (rows[ACTUAL] - rows[WINDOW + ACTUAL]).tolist()
    last = repeats = majority = recent_majority = 0
    for label, position in zip(labels, _positions(plan, ints, len(labels)).tolist(), strict=True):
        label_counts[label] += 1
        recent[label] += 1
        repeats += label == last
        majority += label_counts.index(max(label_counts)) == label
        if recent.index(max(recent)) == label:
            recent_majority += 1
            ints[bits + position // 64] ^= np.int64(1) << np.int64(position % 64)
        last = label
    hits = rows[[HIT, WINDOW + HIT]].sum(axis=1)
    section.last = last
    section.last_hit = repeats
    section.majority = label_counts.index(max(label_counts))
    section.majority_hit = majority
    section.window_last_hit = repeats
    section.window_majority = recent.index(max(recent))
    section.window_majority_hit = recent_majority
    section.uncompared = judged - len(labels)
    section.uncompared_hit = (hits[:1] - hits[1:]).item()
