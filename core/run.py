"""Run: the compiled loop over rows and a table of models.

One call handles a whole run with any number of models: row by row, in order,

    START     compare a full window of inputs with the reference            → INPUTS_CHANGED
              count the record, route it, predict, decide whether to request its label
              → UNKNOWN_CLASS, GROW_FIRST, PREPARATION_DUE, EXPLANATION_DUE; STRETCH_DUE: the learner may take
              the next rows at once, and they are evaluated here afterwards
    EVALUATE  with a label: update the detector; predictions are evaluated together, at last before a
              reader of the evaluation or a row of another model            → LEVEL_CHANGED
    LEARN     train the block that answers, and during a warning all blocks → DECISION_DUE, GROW_FIRST;
              growth in compiled code is logged                             → LOG_FULL
    FINISH    count the label                                               → EVALUATION_DUE

and returns to Python with a reason when a decision is due. The learner defines how a row is answered and
learned (core/learners/protocol.py). The cursor holds row and phase, and the next call continues exactly
there: where a run is cut changes nothing.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from core import class_weights
from core.active.label_account import NOT_SAMPLED, close
from core.active.label_query import ask, sample_for_evaluation
from core.drift import base as drift
from core.evaluation import count_predictions
from core.inputs import input_watch
from core.kernels import jit
from core.kernels.jit import address_of, kernel, part, start_of, tail, words_at
from core.kernels.records import Record, name_tuple, word, words_after
from core.layout import learning
from core.layout.learning import GREW, LEARNED, NO_ROOM, NOT_ANSWERED, Row, Work
from core.layout.model import Ints, ModelHeader, meets_value, notice
from core.layout.plan import PlanRecord, plan_at
from core.learners import dispatch as learners
from core.learners.protocol import EVENT_WORDS
from core.learning_curve.intervals import end_interval
from core.measures.rows import measure
from core.publishing.published_answers import asked_by, publish
from core.publishing.published_labels import learn_label
from core.tree.columns import gather
from core.tree.prefetch import WIDTH, is_one_model, look_ahead

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
DECISION_DUE: Final = learning.DECISION_DUE
GROW_FIRST: Final = learning.GROW_FIRST
LEVEL_CHANGED: Final = 3
EVALUATION_DUE: Final = 4
UNKNOWN_CLASS: Final = 5
EXPLANATION_DUE: Final = 6
PREPARATION_DUE: Final = 7
LOG_FULL: Final = 8
STRETCH_DUE: Final = 9
INPUTS_CHANGED: Final = 10
DECISIONS: Final = (DECISION_DUE, GROW_FIRST, LEVEL_CHANGED, INPUTS_CHANGED)
"""Reasons that lead to an event, or change the model."""

# Phases of a row
START: Final = 0
EVALUATE: Final = 1
LEARN: Final = 2
FINISH: Final = 3
NEXT: Final = 4


class Cursor(Record):
    """Where a run is; the next call of the kernel continues there."""

    row: int = word("the row")
    phase: int = word("its phase, one of START … NEXT")
    block: int = word("first word of the block for which a decision is due")
    place: int = word("the record's place in this block")
    learned: int = word("number of blocks that have learned the row")
    logged: int = word("number of entries of the log")
    played: int = word("rows before this one were answered and learned by ``BlockLayout.play``")
    stretch: int = word("the row after the stretch that ``play`` learns now")
    routed: int = word("rows before this one have their places in ``ends``; set at every call")
    measured: int = word("rows before this one are in the sums of the measures")
    counted: int = word("rows before this one are in the counters of the evaluation")
    ends: Any = words_after(int, "places where the next rows end, for the last WIDTH rows before ``routed``")


CURSOR_WORDS: Final = Cursor.SIZE + WIDTH


def new_cursor() -> Cursor:
    """Return the cursor of a run that has not begun."""
    words = np.zeros(CURSOR_WORDS, dtype=np.int64)
    jit.register(words)
    return Cursor.over(words)


class LogEntry(Record):
    """A growth in compiled code."""

    row: int = word("the row")
    model: int = word("index of its model")
    event: Any = words_after(float, "the growth, for ``BlockLayout.event_of``")


LOG_FIELDS: Final = LogEntry.SIZE
LOG_ENTRIES: Final = 64


def log_of(classes: int) -> Ints:
    """Return an empty log for runs whose models have at most ``classes`` classes."""
    log = np.empty(LOG_ENTRIES * (LOG_FIELDS + EVENT_WORDS + classes), dtype=np.int64)
    jit.register(log)
    return log


class Run(NamedTuple):
    """The arrays of a run; kernels work with a copy that has bare pointers in the place of arrays.

    n is the number of rows, d of columns, K of classes. In the mode LEARN_ONLY prediction (-1: unknown),
    report, asked, sampled and importance are read instead of written, and a row whose label is DECLINED,
    EXPIRED or ANSWERED closes requests, whose number is its weight.
    """

    addresses: Any
    """int64[table]: addresses of the models."""
    plans: Any
    """int64[table]: addresses of their plans."""
    prepared: Any
    """int64[table]: for frozen models the address of the result of BlockLayout.prepare, 0: none yet."""
    model: Any
    """int64[n]: index in the table."""
    x: Any
    """float64[n, d]."""
    label: Any
    """int32[n], -1: none."""
    weight: Any
    """float64[n]."""
    prediction: Any
    """int32[n], written."""
    probability: Any
    """float64[n, K], zeros, written."""
    report: Any
    """float64[n, RAW + K], NaN, written by models with calibrated probabilities or sets
    (core/layout/published.py); one row if there is none in the table."""
    asked: Any
    """int8[n], 0 or 1, written."""
    sampled: Any
    """int8[n], written."""
    importance: Any
    """float64[n], written."""
    version: Any
    """int64[n], written."""
    columns: Any
    """float64[d]: room for the numeric attributes of a record; this and the next two: any content."""
    scratch: Any
    """Workspace, see ``Work``."""
    votes: Any
    log: Any
    """int64[LOG_ENTRIES·words], from ``log_of``; the reader sets ``Cursor.logged`` to 0."""
    cursor: Any
    """int64[CURSOR_WORDS], from ``new_cursor``."""
    rows: int
    """n."""
    width: int
    """d."""
    classes: int
    """K."""
    entry_words: int
    """Words of an entry of the log."""
    mode: int


name_tuple(
    Run,
    *("int64[::1]", "int64[::1]", "int64[::1]", "int64[::1]"),
    *("float64[:, ::1]", "int32[::1]", "float64[::1]"),
    *("int32[::1]", "float64[:, ::1]", "float64[:, ::1]"),
    *("int8[::1]", "int8[::1]", "float64[::1]", "int64[::1]"),
    *("float64[::1]", "float64[::1]", "float64[::1]"),
    *("int64[::1]", "int64[::1]"),
    *("int64", "int64", "int64", "int64", "int64"),
)

# Sizes of a run: the largest of its models
SIZES_COLUMNS: Final = 0
SIZES_CLASSES: Final = 1
SIZES_WORDS: Final = 2

MAX_WEIGHT: Final = 1e9
"""Largest weight of a row: sums of millions of such weights are exact, and far from infinity."""

LEAST_STRETCH: Final = 4
"""Number of rows from which a stretch is worth a return to Python."""

NOTHING: Final[Any] = np.int64(-1)
"""No place or hint; a literal would have its own type: two compilations."""
UNMET: Final[Any] = np.int64(NOT_ANSWERED)
"""The place of a row in a further block, for the same reason no literal."""

detect = drift.dispatcher()
answer, learn, route_ahead = learners.dispatcher()


@kernel
def with_pointers(arrays: Run) -> Run:
    """Return the run with bare pointers.

    References to arrays with an owner are counted, atomically, at every call of an inner function.
    """
    return Run(
        start_of(arrays.addresses),
        start_of(arrays.plans),
        start_of(arrays.prepared),
        start_of(arrays.model),
        start_of(arrays.x),
        start_of(arrays.label),
        start_of(arrays.weight),
        start_of(arrays.prediction),
        start_of(arrays.probability),
        start_of(arrays.report),
        start_of(arrays.asked),
        start_of(arrays.sampled),
        start_of(arrays.importance),
        start_of(arrays.version),
        start_of(arrays.columns),
        start_of(arrays.scratch),
        start_of(arrays.votes),
        start_of(arrays.log),
        start_of(arrays.cursor),
        arrays.rows,
        arrays.width,
        arrays.classes,
        arrays.entry_words,
        arrays.mode,
    )


@kernel
def stretch_end(run: Run, plan: PlanRecord, model: ModelHeader, row: int) -> int:
    """Return the row after the stretch that the block may learn at once: at most ``plan.stretch`` rows.

    A stretch consists of rows of one model with labels. It ends before a row with the first record of a class
    or of an open value: such a row changes the meaning of all later rows.
    """
    end, most = row, min(row + plan.stretch, run.rows)
    for period in (plan.review, plan.every):
        if period > 0:  # reviews and evaluations look at all members, in their state after that row
            most = min(most, row + period - model.labels % period)
    while end < most and run.model[end] == run.model[row] and 0 <= run.label[end] < model.classes:
        if plan.open_values != 0 and meets_value(plan, model, tail(run.x, end * run.width)):
            break
        end += 1
    return end


@kernel
def others_learn(model: ModelHeader, number: int) -> bool:
    """Return whether block ``number`` (above 0) exists and learns, as it does during a warning."""
    if model.second == 0 or model.level != drift.WARNING:
        return False
    return bool(model.block(number).start < model.words)


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


@kernel
def write_log(run: Run, cursor: Cursor, row: int) -> None:
    """Write the growth that ``run.votes`` holds to the log."""
    ints, floats = words_at(address_of(run.log))
    entry = LogEntry(ints, floats, cursor.logged * run.entry_words)
    entry.row, entry.model = row, run.model[row]
    for position in range(run.entry_words - LOG_FIELDS):
        entry.event[position] = run.votes[position]
    cursor.logged += 1


@kernel
def place_ahead(run: Run, cursor: Cursor, plan: PlanRecord, model: ModelHeader, row: int) -> int:
    """Return the place of a row's record if its way is known, else -1; route the next rows if possible."""
    if row >= cursor.routed and plan.route_ahead != 0 and is_one_model(run, row):
        records = part(run.x, row * run.width, WIDTH * run.width)
        if route_ahead(plan.learner, plan, model.block(0), records, run.width, cursor.ends):
            cursor.routed = row + WIDTH
    if row < cursor.routed:
        return cursor.ends[WIDTH - (cursor.routed - row)]
    return -1


@kernel
def start(
    run: Run, cursor: Cursor, plan: PlanRecord, model: ModelHeader, record: Row, row: int, place: int
) -> tuple[int, int, int, int]:
    """Begin a row: answer it, and decide whether its label is requested.

    Returns a reason, the next phase, and the record's place and hint.
    """
    hint = NOTHING
    if record.label >= plan.classes:
        return UNKNOWN_CLASS, START, place, hint
    if (run.mode == LABELLED) | (run.mode == ON_REQUEST) and input_watch.have_changed(plan, model):
        return INPUTS_CHANGED, START, place, hint
    is_played = row < cursor.played
    if not is_played and plan.stretch != 0 and (run.mode == LABELLED) | (run.mode == LEARN_ONLY):
        end = stretch_end(run, plan, model, row)
        if end >= row + LEAST_STRETCH:
            cursor.stretch = end
            return STRETCH_DUE, START, place, hint
    if run.mode == LEARN_ONLY:
        if record.label >= 0:
            return END, EVALUATE, place, hint
        close(model, record.label, int(record.weight))
        return END, NEXT, place, hint
    run.version[row] = model.labels
    published = tail(run.probability, row * run.classes)
    shares = published
    if not is_played:
        prepared = run.prepared[run.model[row]] if run.mode == ANSWER_ONLY else NOTHING
        block = model.block(0)
        best, place, hint = answer(plan.learner, plan, block, place, record, prepared, run.scratch, published)
        if place < 0:
            cursor.block, cursor.place = block.start, hint
            return GROW_FIRST if place == NO_ROOM else PREPARATION_DUE, START, place, hint
        if plan.publishes != 0:
            best = publish(run, plan, model, row, best, run.mode != ANSWER_ONLY)
            shares = asked_by(run, plan, row)
        run.prediction[row] = best
    phase = NEXT if run.mode == ANSWER_ONLY else EVALUATE
    if run.mode != ANSWER_ONLY:
        model.records += 1
        run.sampled[row] = sample_for_evaluation(plan, model)
        if run.mode == ON_REQUEST or record.label < 0:
            count(run, cursor, plan, model, row)
            sampled, asked, importance = ask(plan, model, place, shares, run.scratch, run.sampled[row])
            run.sampled[row], run.asked[row], run.importance[row] = sampled, asked, importance
            if record.label < 0 or not asked:
                phase, cursor.counted = NEXT, row + 1
        input_watch.take(plan, model, record.x, published, int(run.prediction[row]))
    if plan.explain != 0:
        cursor.block, cursor.place = model.first, place
        return EXPLANATION_DUE, phase, place, hint
    return END, phase, place, hint


@kernel
def count(run: Run, cursor: Cursor, plan: PlanRecord, model: ModelHeader, end: int) -> None:
    """Evaluate the predictions of the rows before ``end``, which belong to one model.

    Rows of one model are evaluated together: the counters are in registers then, and the loop over rows does
    not wait for them. Whatever reads the counters calls this kernel before.
    """
    if cursor.counted < end:
        count_predictions(run, plan, model, cursor.counted, end, run.mode != ON_REQUEST)
        cursor.counted = end


@kernel
def detect_drift(run: Run, plan: PlanRecord, model: ModelHeader, label: int, row: int) -> int:
    """Update the detector with the error of a row with a label; return a reason."""
    prediction = run.prediction[row]
    if prediction < 0:
        return END
    # The strategy requests labels where the model is unsure. These have more errors, without any drift.
    if run.asked[row] == 0 or run.sampled[row] != NOT_SAMPLED or plan.sampled_detection == 0:
        error = 0.0 if prediction == label else 1.0
        p, state = plan.parameters(plan.drift_at), model.section(plan.detector_state)
        level = detect(plan.drift, p, state, error)
        if level != model.level:
            model.level = level
            return LEVEL_CHANGED
    return END


@kernel
def train(
    run: Run,
    cursor: Cursor,
    plan: PlanRecord,
    model: ModelHeader,
    record: Row,
    row: int,
    place: int,
    hint: int,
) -> tuple[int, int]:
    """Let the next block learn a row, at first the block that answers; return a reason and the next phase."""
    if row < cursor.played:
        return END, FINISH
    block = model.block(0)
    if cursor.learned == 0:
        notice(plan, model, record.label, record.x)
    else:
        block, place, hint = model.block(cursor.learned), UNMET, NOTHING
    if plan.weighting != class_weights.NONE:
        count(run, cursor, plan, model, row + 1)
        mass = min(class_weights.mass_of(plan, model, record.label, record.weight), MAX_WEIGHT)
        record = Row(record.x, record.xs, record.label, mass)
    outcome, place = learn(plan.learner, plan, block, place, record, hint, Work(run.scratch, run.votes))
    phase = LEARN
    if outcome != GROW_FIRST:
        cursor.learned += 1
        if not others_learn(model, cursor.learned):
            phase, cursor.learned = FINISH, 0
    if outcome == GREW:
        write_log(run, cursor, row)
        cursor.routed = row  # the ways may be longer now
        return LOG_FULL if cursor.logged == LOG_ENTRIES else END, phase
    if outcome != LEARNED:
        cursor.block, cursor.place = block.start, place
        return outcome, phase
    return END, phase


@kernel
def finish(run: Run, cursor: Cursor, plan: PlanRecord, model: ModelHeader, row: int) -> int:
    """Count the label of a row; return a reason."""
    if plan.publishes != 0:
        learn_label(run, plan, model, row, run.mode == LABELLED)
    model.labels += 1
    if run.asked[row] != 0:
        model.replies += 1
    if model.labels >= model.interval_end:
        count(run, cursor, plan, model, row + 1)
        end_interval(plan, model)
    if plan.every > 0 and model.labels % plan.every == 0:
        return EVALUATION_DUE
    return END


@kernel("int64(Run)")
def run(arrays: Run) -> int:
    """Process rows from the cursor on; return the reason of the return."""
    run = with_pointers(arrays)
    ints, floats = words_at(address_of(run.cursor))
    cursor = Cursor(ints, floats, 0)
    row, phase, reason = cursor.row, cursor.phase, END
    cursor.routed = row
    while row < run.rows and reason == END:
        look_ahead(run, row)
        ints, floats = words_at(run.addresses[run.model[row]])
        model, plan = ModelHeader(ints, floats, 0), plan_at(run.plans[run.model[row]])
        x = tail(run.x, row * run.width)
        record = Row(x, gather(plan, x, run.columns), int(run.label[row]), run.weight[row])
        place, hint = place_ahead(run, cursor, plan, model, row), NOTHING
        if phase == START:
            reason, phase, place, hint = start(run, cursor, plan, model, record, row, place)
        if phase == EVALUATE and reason == END:
            reason, phase = detect_drift(run, plan, model, record.label, row), LEARN
        if phase == LEARN and reason == END:
            reason, phase = train(run, cursor, plan, model, record, row, place, hint)
        if phase == FINISH and reason == END:
            reason, phase = finish(run, cursor, plan, model, row), NEXT
        is_last = reason != END or row + 1 == run.rows or run.model[row + 1] != run.model[row]
        if is_last and run.mode != ANSWER_ONLY:
            count(run, cursor, plan, model, row + int(phase > EVALUATE))
        if phase == NEXT and reason == END:
            row, phase = row + 1, START
    cursor.row, cursor.phase = row, phase
    if run.mode != ANSWER_ONLY:
        end = row + int(reason == EVALUATION_DUE)
        measure(run, cursor, end, run.mode != LEARN_ONLY, run.mode != ON_REQUEST)
    return reason
