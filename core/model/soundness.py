"""Soundness of a model's words: the counts, codes, kinds and positions that kernels rely on.

Compiled code works on bare pointers: if one of these words is wrong, the code may read or write outside of
the model, or loop for ever. So all of them are checked before a buffer from outside becomes a model
(core/model/snapshot.py): a snapshot's checksum shows that it is complete, not that its author is trusted.
Numbers that are only used in arithmetic may have any value. Further invariants of a model are checked by
core/model/validate.py.

One kernel goes over the buffer and returns the number of a sentence; a plug-in's words are checked by its
kernel ``problem`` (core/plugin.py). It takes microseconds for a small model, and reads memory that the
model's first records would read.
"""

from __future__ import annotations

import importlib
import math
from typing import Final

import numpy as np

from core import problems
from core.active.budgets import base as budgets
from core.active.queries import base as queries
from core.drift import base as drift
from core.errors import SnapshotError
from core.evaluation import largest_class
from core.kernels import jit
from core.kernels.jit import kernel, words_at
from core.kernels.records import Words
from core.layout.plan import PlanRecord
from core.learners import protocol as learners
from core.model.buffers import block_places
from core.plan import Plan
from core.problems import MOST, PLUGIN, SOUND, in_block, of_plugin
from core.tree import layout as at
from core.tree.layout import Ints

SENTENCES: Final = (
    "counters must be from 0 to 2**53",
    "classes must be from 0 to the number of classes in the schema",
    "level must be control (0), warning (1) or drift (2)",
    "a background block is stale (1) or not (0)",
    "values seen must be from 0 to the room for values, and all of it unless the attribute is open",
    "evaluation counts must add up to the evaluated predictions",
    "the position in the window must follow from the number of evaluated predictions",
    "window counts must equal the numbers of codes in the window",
    "hits of baselines must follow from the labels in the window, and be at most the compared predictions",
    "sums over sampled records must be numbers of at least 0, and hits at most the sampled records",
)
(
    COUNTERS,
    CLASSES,
    LEVEL,
    STALE,
    VALUES,
    JUDGED,
    POSITION,
    WINDOW,
    BASELINES,
    SAMPLED,
) = range(1, len(SENTENCES) + 1)

detector_problem = drift.problem_dispatcher()
strategy_problem = queries.problem_dispatcher()
budget_problem = budgets.problem_dispatcher()
block_problem = learners.problem_dispatcher()


def check(plan: Plan, ints: Ints) -> None:
    """Raise SnapshotError if a buffer of a plan's sizes has words that are unsafe for kernels."""
    sentence = problem(plan, ints)
    if sentence is None and plan.ints[at.PLAN_OPEN_VALUES]:
        sentence = _nameless_value(plan, ints)
    if sentence is not None:
        msg = f"snapshot holds words that no model has: {sentence}"
        raise SnapshotError(msg)


def problem(plan: Plan, ints: Ints) -> str | None:
    """Return a sentence about invalid words of a buffer, None if there are none; its length must be right."""
    jit.register(ints)
    found = inspect(plan.address, ints.ctypes.data, plan.blocks.blank_address)
    if found != SOUND:
        return _sentence(plan, found)
    for block, t in enumerate(block_places(ints)):
        sentence = plan.blocks.problem(ints, t)
        if sentence is not None:
            return f"{plan.blocks.name_of(block)}: {sentence}"
    return None


def _nameless_value(plan: Plan, ints: Ints) -> str | None:
    """Return a sentence if more values were seen than have names: open attributes have room to spare."""
    first = int(plan.ints[at.PLAN_VALUES_SEEN])
    seen = ints[first : first + len(plan.values_index)].tolist()
    for attribute, n in zip(plan.values_index, seen, strict=True):
        if n > len(plan.schema.attributes[attribute].values):
            return SENTENCES[VALUES - 1]
    return None


def _sentence(plan: Plan, found: int) -> str:
    where = problems.read(found)
    if where.plugin == 0:
        return SENTENCES[where.sentence - 1]
    learner = plan.spec.learner
    block = plan.blocks.name_of(where.block)
    place = f"{block}: {plan.blocks.place_name} {where.place}: " if where.place >= 0 else ""
    if where.plugin == at.PLAN_LEARNER:
        own = learners.kernels_of(learner).PROBLEMS[where.sentence - 1]
        return f"{place or f'{block}: '}{own}"
    plugin = {
        at.PLAN_DRIFT: plan.spec.drift,
        at.PLAN_STRATEGY: plan.spec.query,
        at.PLAN_BUDGETING: plan.spec.budget,
        **dict(learner.plugins()),
    }[where.plugin]
    sentences = importlib.import_module(type(plugin).__module__).PROBLEMS
    return f"{place}{plugin.name}: {sentences[where.sentence - 1]}"


@kernel("int64(int64, int64, int64)")
def inspect(plan_address: int, address: int, blank_address: int) -> int:
    """Return a problem of a buffer, or SOUND; blank_address: BlockLayout.blank_address."""
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    found = header_problem(plan, ints)
    if found == SOUND:
        found = evaluation_problem(plan, ints, floats)
    if found == SOUND:
        found = section_problem(plan, params, ints, floats)
    t, block = ints[at.MODEL_FIRST], 0
    while found == SOUND and t < ints[at.MODEL_WORDS]:
        found = block_problem(
            plan[at.PLAN_LEARNER], PlanRecord(plan, params, 0), Words(ints, floats, t), blank_address
        )
        if found != SOUND and found & PLUGIN == 0:
            found = of_plugin(at.PLAN_LEARNER, found)
        found = in_block(block, found)
        t += ints[t + at.BLOCK_WORDS]
        block += 1
    return found


@kernel
def header_problem(plan, ints) -> int:
    """Return a problem of the model's header or of the values it has seen, or SOUND."""
    for word in range(at.MODEL_RECORDS, at.MODEL_HEADER):
        if not 0 <= ints[word] <= MOST:
            return COUNTERS
    if ints[at.MODEL_CLASSES] > plan[at.PLAN_CLASSES]:
        return CLASSES
    if ints[at.MODEL_LEVEL] > drift.DRIFT:
        return LEVEL
    if ints[at.MODEL_BACKGROUND_STALE] > 1:
        return STALE
    for j in range(plan[at.PLAN_NOMINAL]):
        room = plan[plan[at.PLAN_NOMINAL_TABLE] + j * at.NOMINAL_FIELDS + at.NOMINAL_ROOM]
        seen = ints[plan[at.PLAN_VALUES_SEEN] + j]
        if not 0 <= seen <= room or (plan[at.PLAN_OPEN_VALUES] == 0 and seen != room):
            return VALUES
    return SOUND


@kernel
def evaluation_problem(plan, ints, floats) -> int:
    """Return a problem of the evaluation, or SOUND."""
    section, k, window = plan[at.PLAN_EVALUATION], plan[at.PLAN_CLASSES], plan[at.PLAN_WINDOW]
    judged = ints[section + at.EVALUATION_COUNT]
    if not 0 <= judged <= MOST:
        return JUDGED
    if ints[section + at.EVALUATION_NEXT] != judged % window:
        return POSITION
    inside = min(judged, window)
    rows = section + at.EVALUATION_FIELDS
    counts = np.zeros((at.EVALUATION_WINDOW, k), dtype=np.int64)
    bits = plan[at.PLAN_CODE_BITS]
    per_word, mask = 32 // bits, (1 << bits) - 1
    codes = rows + at.EVALUATION_ROWS * k
    for position in range(inside):
        word = position // per_word
        pair = ints[codes + word] >> (2 * bits * (position - word * per_word))
        actual, predicted = pair & mask, (pair >> bits) & mask
        if actual >= k or predicted >= k:
            return WINDOW
        counts[at.EVALUATION_ACTUAL, actual] += 1
        counts[at.EVALUATION_PREDICTED, predicted] += 1
        if actual == predicted:
            counts[at.EVALUATION_HIT, actual] += 1
    labels, predictions = 0, 0
    for c in range(k):
        for row in range(at.EVALUATION_WINDOW):
            found = ints[rows + row * k + c]
            if not counts[row, c] <= found <= judged:
                return JUDGED
            if ints[rows + (at.EVALUATION_WINDOW + row) * k + c] != counts[row, c]:
                return WINDOW
        actual = ints[rows + at.EVALUATION_ACTUAL * k + c]
        predicted = ints[rows + at.EVALUATION_PREDICTED * k + c]
        if ints[rows + at.EVALUATION_HIT * k + c] > min(actual, predicted):
            return JUDGED
        labels += actual
        predictions += predicted
    if labels != judged or predictions != judged:
        return JUDGED
    found = baselines_problem(plan, ints, section, judged, inside)
    if found != SOUND:
        return found
    if not 0 <= ints[section + at.EVALUATION_SAMPLED_HIT] <= ints[section + at.EVALUATION_SAMPLED] <= MOST:
        return SAMPLED
    if not 0 <= ints[section + at.EVALUATION_CHOSEN] <= MOST:
        return SAMPLED
    for word in range(at.EVALUATION_IMPORTANCE, at.EVALUATION_CHOSEN):
        if not 0.0 <= floats[section + word] < math.inf:
            return SAMPLED
    return SOUND


@kernel
def baselines_problem(plan, ints, section: int, judged: int, inside: int) -> int:
    """Return a problem of the counts of the baselines, or SOUND; codes and counts of labels were checked."""
    k, size, bits = plan[at.PLAN_CLASSES], plan[at.PLAN_WINDOW], plan[at.PLAN_CODE_BITS]
    rows = section + at.EVALUATION_FIELDS
    window, codes = rows + at.EVALUATION_WINDOW * k, rows + at.EVALUATION_ROWS * k
    per_word, mask = 32 // bits, (1 << bits) - 1
    last, right = ints[section + at.EVALUATION_BEFORE], 0
    if not 0 <= last < max(k, 1) or not 0 <= ints[section + at.EVALUATION_LAST] < max(k, 1):
        return BASELINES
    repeats, majority = 0, 0
    first = ints[section + at.EVALUATION_NEXT] if inside == size else 0
    for i in range(inside):
        position = first + i if first + i < size else first + i - size
        word = position // per_word
        label = (ints[codes + word] >> (2 * bits * (position - word * per_word))) & mask
        repeats += 1 if label == last else 0
        last = label
    for word in range((size + 63) // 64):
        found = ints[plan[at.PLAN_WINDOW_BITS] + word]
        for bit in range(64):
            if (found >> bit) & 1 != 0:
                majority += 1
                if word * 64 + bit >= inside:
                    return BASELINES
    for c in range(k):
        right += ints[rows + at.EVALUATION_HIT * k + c]
    uncompared = ints[section + at.EVALUATION_UNCOMPARED]
    fits = 0 <= uncompared <= judged - inside
    fits = fits and 0 <= ints[section + at.EVALUATION_UNCOMPARED_HIT] <= min(uncompared, right)
    fits = fits and (inside == 0 or last == ints[section + at.EVALUATION_LAST])
    fits = fits and ints[section + at.EVALUATION_WINDOW_LAST_HIT] == repeats
    fits = fits and ints[section + at.EVALUATION_WINDOW_MAJORITY_HIT] == majority
    fits = fits and repeats <= ints[section + at.EVALUATION_LAST_HIT] <= judged - uncompared
    fits = fits and 0 <= ints[section + at.EVALUATION_MAJORITY_HIT] <= judged - uncompared
    fits = fits and ints[section + at.EVALUATION_MAJORITY] == largest_class(ints, rows, k)
    fits = fits and ints[section + at.EVALUATION_WINDOW_MAJORITY] == largest_class(ints, window, k)
    return SOUND if fits else BASELINES


@kernel
def section_problem(plan, params, ints, floats) -> int:
    """Return a problem of the states of plug-ins that a model has once, or SOUND."""
    kind, first = plan[at.PLAN_DRIFT], plan[at.PLAN_DRIFT + 1]
    number = detector_problem(kind, Words(plan, params, first), Words(ints, floats, plan[at.PLAN_DETECTOR]))
    if number != SOUND:
        return of_plugin(at.PLAN_DRIFT, number)
    kind, first = plan[at.PLAN_STRATEGY], plan[at.PLAN_STRATEGY + 1]
    number = strategy_problem(kind, Words(plan, params, first), Words(ints, floats, plan[at.PLAN_QUERY]))
    if number != SOUND:
        return of_plugin(at.PLAN_STRATEGY, number)
    kind, first = plan[at.PLAN_BUDGETING], plan[at.PLAN_BUDGETING + 1]
    number = budget_problem(kind, Words(plan, params, first), Words(ints, floats, plan[at.PLAN_BUDGET]))
    if number != SOUND:
        return of_plugin(at.PLAN_BUDGETING, number)
    return SOUND
