"""Run: the compiled loop over rows and a table of models.

One call handles a whole run with any number of models: row by row, in order,

    START     count the record, route it, predict, decide whether to request its label
              → EXPLANATION_DUE, PREPARATION_DUE, STRETCH_DUE: the learner may take the next rows at once;
              they are evaluated here afterwards
    EVALUATE  with a label: evaluate the prediction, update the detector    → LEVEL_CHANGED
    LEARN     train the block that answers, and during a warning all blocks → DECISION_DUE, GROW_FIRST;
              growth in compiled code is logged                             → LOG_FULL
    FINISH    count the label                                               → EVALUATION_DUE

and returns to Python with a reason when a decision is due. The learner defines how a row is answered and
learned (core/learners/protocol.py). The cursor stores row and phase, and the next call continues exactly
there: where a run is cut changes nothing.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.active.label_account import NOT_SAMPLED, close
from core.active.label_query import ask, sample_for_evaluation
from core.drift import base as drift
from core.evaluation import count_prediction
from core.kernels.jit import address_of, kernel, part, prefetch, row_of, start_of, words_at
from core.kernels.records import Words
from core.layout.learning import Row, Work
from core.layout.plan import PlanRecord
from core.learners import protocol as learners
from core.tree import layout as at
from core.tree.byoffset.columns import gather
from core.tree.byoffset.prefetch import WIDTH

# Modes
LABELLED: Final = 0
"""A row with a label is test-then-train at once; the label of a row without one may be requested."""
ON_REQUEST: Final = 1
"""The label of every row may be requested; a label is used only if it was (offline active learning)."""
LEARN_ONLY: Final = 2
"""Rows were answered before: evaluate the stored prediction and learn."""
ANSWER_ONLY: Final = 3
"""Rows are answered and not learned: no byte of the model changes (a frozen model)."""

# Reasons to return to Python
END: Final = 0
DECISION_DUE: Final = at.DECISION_DUE
GROW_FIRST: Final = at.GROW_FIRST
LEVEL_CHANGED: Final = 3
EVALUATION_DUE: Final = 4
UNKNOWN_CLASS: Final = 5
EXPLANATION_DUE: Final = 6
PREPARATION_DUE: Final = 7
LOG_FULL: Final = 8
STRETCH_DUE: Final = 9

# Phases of a row
START: Final = 0
EVALUATE: Final = 1
LEARN: Final = 2
FINISH: Final = 3
NEXT: Final = 4

# Cursor
CURSOR_ROW: Final = 0
CURSOR_PHASE: Final = 1
CURSOR_BLOCK: Final = 2  # first word of the block for which a decision is due,
CURSOR_PLACE: Final = 3  # and the record's place in it
CURSOR_LEARNED: Final = 4  # number of blocks that have learned the row
CURSOR_LOGGED: Final = 5  # number of rows of the log that are written
CURSOR_PLAYED: Final = 6  # rows before this one were answered and learned by ``BlockLayout.play``
CURSOR_STRETCH: Final = 7  # the row after the stretch that ``play`` learns now
CURSOR_ENDS: Final = 8  # where the next rows' ways end; cleared at every return
CURSOR_WORDS: Final = CURSOR_ENDS + WIDTH

# Log of a run. Each growth in compiled code: its row and model, then words (BlockLayout.event_of)
LOG_ROW: Final = 0
LOG_MODEL: Final = 1
LOG_EVENT: Final = 2
LOG_ROWS: Final = 64

# Sizes of a run: the largest of its models
SIZES_COLUMNS: Final = 0
SIZES_CLASSES: Final = 1
SIZES_WORDS: Final = 2

MAX_WEIGHT: Final = 1e9
"""Largest weight of a row: sums of millions of such weights are exact, and far from infinity."""

LEAST_STRETCH: Final = 4
"""Number of rows from which a stretch is worth a return to Python."""

AHEAD: Final = 2 * WIDTH  # rows
LINES: Final = 16  # of 64 bytes

_SIGNATURE = (
    "int64(int64[::1], int64[::1], int64[::1], int64[::1], float64[:, ::1], int32[::1], float64[::1],"
    " int32[::1], float64[:, ::1], boolean[::1], int8[::1], float64[::1], int64[::1], int64, float64[:, ::1],"
    " float64[:, ::1], int64[::1])"
)

detect = drift.dispatcher()
answer, learn, route_ahead = learners.dispatcher()


@kernel
def look_ahead(addresses, model, cells: int, d: int, row: int, n: int) -> None:
    """Prefetch the first cache lines of a later record and, if it differs, of its model.

    Ten thousand models do not fit a core's cache; a small model fits these lines completely.
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
def is_stretch(models, row: int, n: int) -> bool:
    """Return whether the next WIDTH rows belong to one model."""
    if row + WIDTH > n or models[row] != models[row + WIDTH - 1]:
        return False
    others = 0
    for later in range(row, row + WIDTH):
        others |= models[later] ^ models[row]
    return bool(others == 0)


@kernel
def stretch_end(plan, ints, models, label, x, row: int, n: int) -> int:
    """Return the row after the stretch that the block may learn at once: at most PLAN_STRETCH rows.

    A stretch consists of rows of one model with labels. It ends before a row with the first record of a class
    or of an open value: such a row changes the meaning of all later rows.
    """
    end, most = row, min(row + plan[at.PLAN_STRETCH], n)
    for period in (plan[at.PLAN_REVIEW], plan[at.PLAN_EVERY]):
        if period > 0:  # reviews and evaluations look at all members, in their state after that row
            most = min(most, row + period - ints[at.MODEL_LABELS] % period)
    while end < most and models[end] == models[row] and 0 <= label[end] < ints[at.MODEL_CLASSES]:
        if plan[at.PLAN_OPEN_VALUES] != 0 and meets_value(plan, ints, row_of(x, end)):
            break
        end += 1
    return end


@kernel
def meets_value(plan, ints, x) -> bool:
    """Return whether a record has a value of an open attribute that the model has not learned before."""
    seen = plan[at.PLAN_VALUES_SEEN]
    for j in range(plan[at.PLAN_NOMINAL]):
        entry = plan[at.PLAN_NOMINAL_TABLE] + j * at.NOMINAL_FIELDS
        if ints[seen + j] <= x[plan[entry + at.NOMINAL_COLUMN]] < plan[entry + at.NOMINAL_ROOM]:
            return True
    return False


@kernel
def notice(plan, ints, label: int, x) -> None:
    """Count a new class and new values of open attributes as learned by the model."""
    if ints[at.MODEL_CLASSES] <= label:
        ints[at.MODEL_CLASSES] = label + 1
    if plan[at.PLAN_OPEN_VALUES] != 0:
        seen = plan[at.PLAN_VALUES_SEEN]
        for j in range(plan[at.PLAN_NOMINAL]):
            entry = plan[at.PLAN_NOMINAL_TABLE] + j * at.NOMINAL_FIELDS
            value = x[plan[entry + at.NOMINAL_COLUMN]]
            if ints[seen + j] <= value < plan[entry + at.NOMINAL_ROOM]:
                ints[seen + j] = int(value) + 1


@kernel
def block_at(ints, number: int) -> int:
    """Return the first word of a block by its number; block 0 answers."""
    t = ints[at.MODEL_FIRST]
    for _ in range(number):
        t += ints[t + at.BLOCK_WORDS]
    return t


@kernel
def others_learn(ints, number: int) -> bool:
    """Return whether block ``number`` (above 0) exists and learns, as it does during a warning."""
    if ints[at.MODEL_SECOND] == 0 or ints[at.MODEL_LEVEL] != drift.WARNING:
        return False
    return bool(block_at(ints, number) < ints[at.MODEL_WORDS])


@kernel("int64(int64[::1], float64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def examine(model, weight, addresses, columns, classes, sizes) -> int:
    """Return the first row whose model is not in the table or whose weight is not legal, or n.

    addresses, columns, classes: int64[table], address 0: no model. sizes: int64[SIZES_WORDS] receives the
    largest sizes of the rows' models.
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
        if not 0.0 < weight[row] <= MAX_WEIGHT:
            return row
    return len(model)


def log_of(classes: int) -> Any:
    """Return an empty log for runs whose models have at most ``classes`` classes."""
    return np.empty((LOG_ROWS, LOG_EVENT + learners.EVENT_WORDS + classes))


@kernel
def write_log(log, number: int, row: int, model: int, words) -> None:
    """Write one growth of a model at a row to the log."""
    log[number, LOG_ROW], log[number, LOG_MODEL] = row, model
    for word in range(log.shape[1] - LOG_EVENT):
        log[number, LOG_EVENT + word] = words[word]


@kernel(_SIGNATURE)
def run(
    addresses,
    plans,
    prepared_at,
    model,
    x,
    label,
    weight,
    prediction,
    probability,
    asked,
    sampled,
    importance,
    version,
    mode: int,
    workspace,
    log,
    cursor,
) -> int:
    """Process rows from the cursor on; return the reason of the return.

    addresses, plans: int64[table]; prepared_at: int64[table], for frozen models the address of the result of
    BlockLayout.prepare, 0: not computed yet (PREPARATION_DUE); model: int64[n]; x: float64[n, d]; label:
    int32[n] (-1: none); weight: float64[n]; prediction: int32[n], probability: float64[n, K] (zeros), asked:
    bool[n], sampled: int8[n], importance: float64[n], version: int64[n] are written. In LEARN_ONLY prediction
    (-1: unknown), asked, sampled and importance are read instead, and a row whose label is DECLINED, EXPIRED
    or ANSWERED closes requests, whose number is its weight. workspace comes from ``workspace_of`` and log
    from ``log_of``; their content does not matter. The reader of the log sets CURSOR_LOGGED to 0.
    """
    n = len(model)
    # References to arrays with an owner are counted, atomically, at every call of an inner function.
    addresses_of, plans_of, models = start_of(addresses), start_of(plans), start_of(model)
    row = cursor[CURSOR_ROW]
    phase = cursor[CURSOR_PHASE]
    played = cursor[CURSOR_PLAYED]
    learned = cursor[CURSOR_LEARNED]
    labels, weights, predictions = start_of(label), start_of(weight), start_of(prediction)
    sampled_at, importances, versions = start_of(sampled), start_of(importance), start_of(version)
    columns, scratch, vote_buffer = row_of(workspace, 0), row_of(workspace, 1), row_of(workspace, 2)
    cells, ends = start_of(x), part(start_of(cursor), CURSOR_ENDS, WIDTH)
    routed_until = row  # the ways of rows before this one are stored
    nothing: Any = np.int64(-1)  # a literal would have its own type: two compilations
    reason = END
    while row < n and reason == END:
        look_ahead(addresses_of, models, address_of(cells), x.shape[1], row, n)
        ints, floats = words_at(addresses_of[models[row]])
        plan, params = words_at(plans_of[models[row]])
        record_plan = PlanRecord(plan, params, 0)
        record, y, w = row_of(x, row), int(labels[row]), weights[row]
        xs = gather(plan, record, columns)
        kind, t = plan[at.PLAN_LEARNER], ints[at.MODEL_FIRST]
        place, hint = nothing, nothing
        if row >= routed_until and plan[at.PLAN_ROUTE_AHEAD] != 0 and is_stretch(models, row, n):
            d = x.shape[1]
            rows = part(cells, row * d, WIDTH * d)
            if route_ahead(kind, record_plan, Words(ints, floats, t), rows, d, ends):
                routed_until = row + WIDTH
        if row < routed_until:
            place = ends[WIDTH - (routed_until - row)]
        if phase == START:
            if y >= plan[at.PLAN_CLASSES]:
                reason = UNKNOWN_CLASS
                break
            if row >= played and plan[at.PLAN_STRETCH] != 0 and (mode == LABELLED) | (mode == LEARN_ONLY):
                end = stretch_end(plan, ints, models, labels, x, row, n)
                if end >= row + LEAST_STRETCH:
                    cursor[CURSOR_STRETCH] = end
                    reason = STRETCH_DUE
                    break
            phase = EVALUATE
            if mode == LEARN_ONLY:
                if y < 0:
                    close(ints, y, int(w))
                    phase = NEXT
            else:
                versions[row] = ints[at.MODEL_LABELS]
                shares = row_of(probability, row)
                prepared = prepared_at[models[row]] if mode == ANSWER_ONLY else nothing
                if row >= played:
                    best, place, hint = answer(
                        kind,
                        record_plan,
                        Words(ints, floats, t),
                        place,
                        Row(record, xs, y, w),
                        prepared,
                        scratch,
                        shares,
                    )
                    if place < 0:
                        cursor[CURSOR_BLOCK], cursor[CURSOR_PLACE] = t, hint
                        reason = GROW_FIRST if place == at.NO_ROOM else PREPARATION_DUE
                        phase = START
                        break
                    predictions[row] = best
                if mode == ANSWER_ONLY:
                    phase = NEXT
                else:
                    ints[at.MODEL_RECORDS] += 1
                    sampled_at[row] = sample_for_evaluation(plan, ints)
                    if mode == ON_REQUEST or y < 0:
                        sampled_at[row], asked[row], importances[row] = ask(
                            plan, params, ints, floats, t, place, shares, scratch, sampled_at[row]
                        )
                        if y < 0 or not asked[row]:
                            phase = NEXT
                if plan[at.PLAN_EXPLAIN] != 0:
                    cursor[CURSOR_BLOCK], cursor[CURSOR_PLACE] = t, place
                    reason = EXPLANATION_DUE
                    break
        if phase == EVALUATE:
            phase = LEARN
            if predictions[row] >= 0:
                count_prediction(plan, ints, floats, y, predictions[row], sampled_at[row], importances[row])
                # The strategy requests labels where the model is unsure. These have more errors, without any
                # drift.
                if not asked[row] or sampled_at[row] != NOT_SAMPLED or plan[at.PLAN_SAMPLED_DETECTION] == 0:
                    error = 0.0 if predictions[row] == y else 1.0
                    detector, detector_at = plan[at.PLAN_DRIFT], plan[at.PLAN_DRIFT + 1]
                    level = detect(
                        detector,
                        Words(plan, params, detector_at),
                        Words(ints, floats, plan[at.PLAN_DETECTOR]),
                        error,
                    )
                    if level != ints[at.MODEL_LEVEL]:
                        ints[at.MODEL_LEVEL] = level
                        reason = LEVEL_CHANGED
                        break
        if phase == LEARN and row < played:
            phase = FINISH
        if phase == LEARN:
            if learned == 0:
                notice(plan, ints, y, record)
            else:
                t, place, hint = block_at(ints, learned), np.int64(at.NOT_ANSWERED), nothing
            outcome, place = learn(
                kind,
                record_plan,
                Words(ints, floats, t),
                place,
                Row(record, xs, y, w),
                hint,
                Work(scratch, vote_buffer),
            )
            if outcome != at.GROW_FIRST:
                learned += 1
                if not others_learn(ints, learned):
                    phase, learned = FINISH, 0
            if outcome == at.GREW:
                write_log(log, cursor[CURSOR_LOGGED], row, models[row], vote_buffer)
                cursor[CURSOR_LOGGED] += 1
                routed_until = row  # the ways may be longer now
                if cursor[CURSOR_LOGGED] == LOG_ROWS:
                    reason = LOG_FULL
                    break
            elif outcome != at.LEARNED:
                cursor[CURSOR_BLOCK], cursor[CURSOR_PLACE] = t, place
                reason = outcome
                break
            if phase == LEARN:
                continue
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
    cursor[CURSOR_LEARNED] = learned
    return reason
