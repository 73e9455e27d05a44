"""A run of rows over a table of models: the compiled loop.

One call handles a whole run, whatever the number of models: row by row, in order,

    START     count the record, route it, predict, decide whether to ask for its label
              → EXPLANATION_DUE
    JUDGE     with a label: evaluate the prediction, tell the detector      → LEVEL_CHANGED
    LEARN     train the main tree                                           → LEAF_DUE, BRANCH_MISSING
    SHADOW    during a warning: train the background tree                   → LEAF_DUE, BRANCH_MISSING
    FINISH    count the label                                               → EVALUATION_DUE

and returns to Python with a reason wherever a decision is due. The cursor remembers row and phase, and the
next call goes on exactly there: where a run is cut changes nothing.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.account import NOT_DRAWN, close
from core.appraisal import is_revisited
from core.asking import ask, draw
from core.drift import base as drift
from core.evaluation import judge
from core.jit import address_of, kernel, part, prefetch, row_of, start_of, words_at
from core.leaf_models import base as leaf_models
from core.observers import base as observers
from core.schedules import base as schedules
from core.screening import conclude_here as conclude
from core.tree import layout as at
from core.tree.foresight import WIDTH, foresee
from core.tree.routing import arrive, count, leaf_at, node_at, route
from core.tree.statistics import count_label

# Modes
LABELLED: Final = 0
"""A row with a label is test-then-train at once; a row without one may have its label asked for."""
ON_REQUEST: Final = 1
"""Every row may have its label asked for; a label is used only if it was (offline active learning)."""
LEARN_ONLY: Final = 2
"""Rows were answered before: judge the stored prediction and learn."""
ANSWER_ONLY: Final = 3
"""Rows are answered and nothing else: not a byte of the model changes (a frozen model)."""

# Reasons to return
END: Final = 0
LEAF_DUE: Final = 1
BRANCH_MISSING: Final = 2
LEVEL_CHANGED: Final = 3
EVALUATION_DUE: Final = 4
UNKNOWN_CLASS: Final = 5
EXPLANATION_DUE: Final = 6

# Phases of a row
START: Final = 0
JUDGE: Final = 1
LEARN: Final = 2
SHADOW: Final = 3
FINISH: Final = 4
NEXT: Final = 5

# Cursor
CURSOR_ROW: Final = 0
CURSOR_PHASE: Final = 1
CURSOR_TREE: Final = 2  # of a due leaf or missing branch: first word of its tree,
CURSOR_NODE: Final = 3  # first word of its node record
CURSOR_ENDS: Final = 4  # where the next rows' ways end; forgotten with every return
CURSOR_WORDS: Final = CURSOR_ENDS + WIDTH

# Sizes of a run
SIZES_COLUMNS: Final = 0
SIZES_CLASSES: Final = 1
SIZES_WORDS: Final = 2

AHEAD: Final = 2 * WIDTH  # rows
LINES: Final = 16  # of 64 bytes

_SIGNATURE = (
    "int64(int64[::1], int64[::1], int64[::1], float64[:, ::1], int32[::1], float64[::1],"
    " int32[::1], float64[:, ::1], boolean[::1], int8[::1], float64[::1], int64[::1], int64, float64[:, ::1],"
    " int64[::1])"
)

detect = drift.dispatcher()
votes, account = leaf_models.dispatcher()
update_numeric = observers.numeric_dispatcher()[0]
update_nominal = observers.nominal_dispatcher()[0]
observe = schedules.dispatcher()[0]


@kernel
def gather(plan: Any, x: Any, scratch: Any) -> Any:
    """Return the numeric attributes of a record side by side: a part of x where they are, else a copy."""
    n = plan[at.PLAN_NUMERIC]
    if plan[at.PLAN_CONTIGUOUS] != 0:
        return part(x, 0, n)
    table = plan[at.PLAN_NUMERIC_TABLE]
    for a in range(n):
        scratch[a] = x[plan[table + a]]
    return part(scratch, 0, n)


@kernel
def learn(
    plan: Any,
    knobs: Any,
    ints: Any,
    floats: Any,
    t: int,
    node: int,
    x: Any,
    xs: Any,
    label: int,
    weight: float,
    memo: int,
    scratch: Any,
    opinions: Any,
) -> int:
    """Train the tree at word t with a record that ends at a node; return END, LEAF_DUE or BRANCH_MISSING.

    Where splits are revised every node of the path learns, and one of them may be due. Else an inner node
    (MOA: a value is missing) learns nothing.
    """
    kind = ints[node + at.NODE_KIND]
    revises = plan[at.PLAN_REVISION] != 0
    if kind == at.ABSENT or (kind != at.LEAF and not revises):
        return BRANCH_MISSING if kind == at.ABSENT else END
    if kind == at.LEAF:
        account(
            plan[at.PLAN_LEAF_MODEL],
            plan,
            knobs,
            ints,
            floats,
            t,
            node,
            x,
            xs,
            label,
            weight,
            memo,
            scratch,
            opinions,
        )
    ints[t + at.TREE_LABELS] += 1
    due = False
    while True:
        leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
        reach = ints[node + at.NODE_REACH]
        count_label(ints, floats, node, leaf, label, weight)
        if plan[at.PLAN_NUMERIC] > 0:
            statistics = leaf + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
            observer = plan[at.PLAN_NUMERIC_OBSERVER]
            if not update_numeric(observer, plan, knobs, floats, statistics, label, xs, weight):
                floats[leaf + at.LEAF_LEFT_OUT] += weight
        if plan[at.PLAN_NOMINAL] > 0:
            statistics = leaf + ints[t + at.TREE_NOMINAL_AT]
            update_nominal(
                plan[at.PLAN_NOMINAL_OBSERVER], plan, knobs, ints, floats, statistics, label, x, weight
            )
        if ints[node + at.NODE_KIND] == at.LEAF or plan[at.PLAN_WATCHES] != 0:
            schedule = plan[at.PLAN_SCHEDULE]
            if observe(schedule, plan, knobs, ints, floats, t, node, leaf, x, xs, label, weight):
                due = True
                if revises:
                    floats[leaf + plan[at.PLAN_REVISION] + at.REVISION_DUE] = 1.0
        else:
            ints[node + at.NODE_REACH] = reach  # MOA's range is that of the node's beginning
            due |= is_revisited(plan, knobs, ints, floats, t, node)
        if not revises or ints[node + at.NODE_PARENT] < 0:
            return LEAF_DUE if due else END
        node = node_at(ints, t, ints[node + at.NODE_PARENT])


@kernel
def look_ahead(addresses: Any, model: Any, cells: int, d: int, row: int, n: int) -> None:
    """Ask for the first cache lines of a record that comes later, and of its model, if it is another one.

    Ten thousand models do not fit a core's cache; a small model lies in these lines altogether.
    """
    later = row + AHEAD
    if later < n:
        if model[later] != model[row]:
            address = addresses[model[later]]
            for line in range(LINES):
                prefetch(address + 64 * line)
        last = min((d + 7) >> 3, LINES)
        for line in range(last):
            prefetch(cells + 8 * later * d + 64 * line)


@kernel
def is_stretch(models: Any, row: int, n: int) -> bool:
    """Return whether the next WIDTH rows are of one model."""
    if row + WIDTH > n or models[row] != models[row + WIDTH - 1]:
        return False
    others = 0
    for later in range(row, row + WIDTH):
        others |= models[later] ^ models[row]
    return bool(others == 0)


@kernel
def notice(plan: Any, ints: Any, label: int, x: Any) -> None:
    """Take note of a class and of values of open attributes that the model has not learned before."""
    if ints[at.MODEL_CLASSES] <= label:
        ints[at.MODEL_CLASSES] = label + 1
    if plan[at.PLAN_OPEN_VALUES] != 0:
        seen = plan[at.PLAN_VALUES_SEEN]
        for j in range(plan[at.PLAN_NOMINAL]):
            entry = plan[at.PLAN_NOMINAL_TABLE] + j * at.NOMINAL_FIELDS
            value = x[plan[entry + at.NOMINAL_COLUMN]]
            if ints[seen + j] <= value < plan[entry + at.NOMINAL_ROOM]:
                ints[seen + j] = int(value) + 1


@kernel("int64(int64[::1], float64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def examine(model: Any, weight: Any, addresses: Any, columns: Any, classes: Any, sizes: Any) -> int:
    """Return the first row whose model is not in the table or whose weight is not above 0 and finite, or n.

    addresses, columns, classes: int64[table], address 0: no model; sizes: int64[SIZES_WORDS] gets the largest
    of the rows' models.
    """
    last: Any = np.int64(-1)
    for row in range(len(model)):
        index = model[row]
        if index != last:
            if not 0 <= index < len(addresses) or addresses[index] == 0:
                return row
            sizes[SIZES_COLUMNS] = max(sizes[SIZES_COLUMNS], columns[index])
            sizes[SIZES_CLASSES] = max(sizes[SIZES_CLASSES], classes[index])
            last = index
        if not 0.0 < weight[row] < math.inf:
            return row
    return len(model)


def workspace_of(columns: int, classes: int) -> Any:
    """Return the workspace of runs with so many columns and classes."""
    return np.empty((3, max(4 * columns, 2 * classes, 1)))


@kernel(_SIGNATURE)
def run(
    addresses: Any,
    plans: Any,
    model: Any,
    x: Any,
    label: Any,
    weight: Any,
    prediction: Any,
    probability: Any,
    asked: Any,
    drawn: Any,
    stands: Any,
    version: Any,
    mode: int,
    workspace: Any,
    cursor: Any,
) -> int:
    """Process rows from the cursor on; return the reason of the return.

    addresses, plans: int64[table]; model: int64[n]; x: float64[n, d]; label: int32[n] (-1: none);
    weight: float64[n]; prediction: int32[n], probability: float64[n, K] (zeros), asked: bool[n], drawn:
    int8[n], stands: float64[n], version: int64[n] are written, except in LEARN_ONLY, where prediction (-1:
    not known), asked, drawn and stands are read, and a row whose label is DECLINED, EXPIRED or ANSWERED
    closes as many requests as its weight says.
    workspace: float64[3, max(4·d, 2·K)], whatever it holds.
    """
    n = len(model)
    # Arrays with an owner have their references counted, atomically, whenever an inner function takes them.
    addresses_of, plans_of, models = start_of(addresses), start_of(plans), start_of(model)
    row = cursor[CURSOR_ROW]
    phase = cursor[CURSOR_PHASE]
    columns, scratch, opinions = row_of(workspace, 0), row_of(workspace, 1), row_of(workspace, 2)
    cells, ends = start_of(x), part(start_of(cursor), CURSOR_ENDS, WIDTH)
    foreseen = row  # the ways of rows before this one are known
    nothing: Any = np.int64(-1)  # not a literal: that would be a type of its own, and a second version of all
    reason = END
    while row < n and reason == END:
        look_ahead(addresses_of, models, address_of(cells), x.shape[1], row, n)
        ints, floats = words_at(addresses_of[models[row]])
        plan, knobs = words_at(plans_of[models[row]])
        record, y, w = row_of(x, row), int(label[row]), weight[row]
        xs = gather(plan, record, columns)
        node, memo = nothing, nothing
        if row >= foreseen and plan[at.PLAN_FORESIGHT] != 0 and is_stretch(models, row, n):
            t = ints[at.MODEL_MAIN]
            if ints[t + at.TREE_NODES] > 1:
                d = x.shape[1]
                rows = part(cells, row * d, WIDTH * d)
                foresee(plan[at.PLAN_FORESIGHT], ints, floats, t, rows, d, ends)
                foreseen = row + WIDTH
        if row < foreseen:
            node = ends[WIDTH - (foreseen - row)]
        if phase == START:
            if y >= plan[at.PLAN_CLASSES]:
                reason = UNKNOWN_CLASS
                break
            phase = JUDGE
            if mode == LEARN_ONLY:
                if y < 0:
                    close(ints, y, int(w))
                    phase = NEXT
            else:
                version[row] = ints[at.MODEL_LABELS]
                t = ints[at.MODEL_MAIN]
                if node < 0:
                    node = arrive(plan, ints, floats, t, record, mode == ANSWER_ONLY)
                if mode != ANSWER_ONLY:
                    ints[at.MODEL_RECORDS] += 1
                    count(ints, floats, t, node, w)
                shares = row_of(probability, row)
                best, memo = votes(
                    plan[at.PLAN_LEAF_MODEL], plan, knobs, ints, floats, t, node, record, xs, scratch, shares
                )
                prediction[row] = best
                if mode == ANSWER_ONLY:
                    phase = NEXT
                else:
                    drawn[row] = draw(plan, ints)
                    if mode == ON_REQUEST or y < 0:
                        drawn[row], asked[row], stands[row] = ask(
                            plan, knobs, ints, floats, t, node, drawn[row]
                        )
                        if y < 0 or not asked[row]:
                            phase = NEXT
                if plan[at.PLAN_EXPLAIN] != 0:
                    cursor[CURSOR_TREE], cursor[CURSOR_NODE] = t, node
                    reason = EXPLANATION_DUE
                    break
        if phase == JUDGE:
            phase = LEARN
            if prediction[row] >= 0:
                judge(plan, ints, floats, y, prediction[row], drawn[row], stands[row])
                # Labels asked for where the model is unsure would look like a drift of their own.
                if not asked[row] or drawn[row] != NOT_DRAWN or plan[at.PLAN_DRAWN_DETECTION] == 0:
                    error = 0.0 if prediction[row] == y else 1.0
                    detector, detector_at = plan[at.PLAN_DRIFT], plan[at.PLAN_DRIFT + 1]
                    level = detect(detector, knobs, detector_at, floats, plan[at.PLAN_DETECTOR], error)
                    if level != ints[at.MODEL_LEVEL]:
                        ints[at.MODEL_LEVEL] = level
                        reason = LEVEL_CHANGED
                        break
        if phase == LEARN:
            notice(plan, ints, y, record)
            t = ints[at.MODEL_MAIN]
            if node < 0:
                node = arrive(plan, ints, floats, t, record, False)
            reason = learn(plan, knobs, ints, floats, t, node, record, xs, y, w, memo, scratch, opinions)
            if reason != BRANCH_MISSING:
                phase = SHADOW
            if reason == LEAF_DUE and conclude(plans_of[models[row]], addresses_of[models[row]], t, node):
                reason = END
            if reason != END:
                cursor[CURSOR_TREE], cursor[CURSOR_NODE] = t, node
                break
        if phase == SHADOW:
            phase = FINISH
            if ints[at.MODEL_BACKGROUND] != 0 and ints[at.MODEL_LEVEL] == drift.WARNING:
                t = ints[at.MODEL_BACKGROUND]
                node, memo = route(plan, ints, floats, t, record, w), nothing
                reason = learn(plan, knobs, ints, floats, t, node, record, xs, y, w, memo, scratch, opinions)
                if reason == BRANCH_MISSING:
                    phase = SHADOW
                if reason == LEAF_DUE and conclude(plans_of[models[row]], addresses_of[models[row]], t, node):
                    reason = END
                if reason != END:
                    cursor[CURSOR_TREE], cursor[CURSOR_NODE] = t, node
                    break
        if phase == FINISH:
            phase = NEXT
            ints[at.MODEL_LABELS] += 1
            if asked[row]:
                ints[at.MODEL_REPLIES] += 1
            every = plan[at.PLAN_EVERY]
            if every > 0 and ints[at.MODEL_LABELS] % every == 0:
                reason = EVALUATION_DUE
                break
        row += 1
        phase = START
    cursor[CURSOR_ROW] = row
    cursor[CURSOR_PHASE] = phase
    return reason
