"""Stretch: rows of one model go through one member after the other, in compiled code.

    rows  ──> member 0 ──> member 1 ──> … ──> their votes, added up in the order of members

A member depends neither on other members nor on the forest's use of its vote
(core/learners/forest/member.py). So it may learn all rows of a stretch before the next member learns the
first row: its tree stays in the cache. The result is the same as with all members learning row by row: the
counters that random numbers depend on are set for each row, and events are sorted afterwards
(core/learners/forest/blocks.py).

Where the worst member is replaced after an alarm, members depend on each other by this rule alone. The alarms
and error rates of all members are kept for each row. Once all members have gone through, the first alarm is
handled: the member that was worst in that row starts again after the row, in any state it has now, and goes
through the rest of the rows again; then the next alarm is handled.

A stretch ends before a row that depends on other rows in a further way (core/run.py:stretch_end). Plans with
more such dependencies have no stretches (PLAN_STRETCH).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from core.drift.adwin import AdwinState
from core.kernels.jit import kernel, part, row_of, start_of, words_at
from core.layout.plan import plan_at
from core.layout.tree import Node, Tree
from core.learners.forest import layout as of
from core.learners.forest.layout import member_at
from core.learners.forest.member import (
    is_watched,
    judge,
    normalise,
    number_of,
    train_seen,
    vote_seen,
    watch,
    weight_of,
)
from core.learners.forest.resampling import chances_of, draw_subset, masked, times_by
from core.learners.hoeffding.plain_split import SPLIT_WORDS
from core.learners.hoeffding.split_attempt import attempt_here
from core.tree import layout as at
from core.tree.byoffset.columns import behind, gather
from core.tree.byoffset.routing import arrive, count
from core.tree.layout import Floats

# State of a stretch (int64[STATE_WORDS])
FIRST: Final = 0  # first row; END is the row after the last
END: Final = 1
MEMBER: Final = 2  # the member that goes through the rows
UNTIL: Final = 3  # the member after the last one of this pass
ROW: Final = 4  # the row that the member has reached
STEP: Final = 5  # the member's step in this row: OWN … BACKGROUND_AGAIN
ANSWERS: Final = 6  # 1: the rows are answered, too; 0: they were answered before
RECORDS: Final = 7  # records that the model had answered before the first row
LABELS: Final = 8  # labels that the model had learned before the first row
CHECKED: Final = 9  # the first row whose alarms were not handled, where the worst member is replaced
LOGGED: Final = 10  # splits in the log
STATE_WORDS: Final = 11

# Steps
OWN: Final = 0  # the member votes and learns
OWN_AGAIN: Final = 1  # the same, after its tree has grown for the row
BACKGROUND: Final = 2  # its background tree learns
BACKGROUND_AGAIN: Final = 3

# Reasons to return, in addition to DECISION_DUE and GROW_FIRST
THROUGH: Final = at.LEARNED
ALARMED: Final = at.GREW + 1
"""The worst member, MEMBER, has to start again after ROW."""
LOG_FULL: Final = ALARMED + 1

# Log of splits in compiled code: row and member of a split, then the words that describe it
LOG_ROW: Final = 0
LOG_MEMBER: Final = 1
LOG_SPLIT: Final = 2
LOG_ROWS: Final = 256

# Row of a subset of attributes, sampled once until another subset replaces it: tree, leaf, then float64[d]
SUBSET_SERIAL: Final = 0  # plus one; 0: empty
SUBSET_LEAF: Final = 1
SUBSET_FIELDS: Final = 2
SUBSET_ROWS: Final = 512
SUBSET_WORDS: Final = 1 << 15  # words of all rows; there is at least one row

# Ballot of a member in a row, where the worst member is replaced: class shares, then
ERROR: Final = 0  # the error rate in its window after the row; -1: not known
ALARM: Final = 1  # alarm of its detectors
BALLOT_WORDS: Final = 2


class Room(NamedTuple):
    """Words that each member in its turn writes to."""

    scratch: Any
    vote_buffer: Any
    chances: Any
    """Probabilities of how often a member learns a record (core/learners/forest/resampling.py)."""
    subsets: Any
    rows: int
    """Number of rows of ``subsets``."""


def new_subsets(attributes: int) -> Floats:
    """Return room for subsets of this number of attributes, float64[row, SUBSET_FIELDS + attribute].

    The number of rows is a power of two.
    """
    words, rows = SUBSET_FIELDS + attributes, SUBSET_ROWS
    while rows > 1 and rows * words > SUBSET_WORDS:
        rows //= 2
    return np.zeros((rows, words))


@kernel(
    "int64(int64, int64, int64, float64[:, ::1], int32[::1], float64[::1], int32[::1], float64[:, ::1],"
    " float64[:, ::1], float64[:, :, ::1], float64[:, ::1], float64[::1], float64[:, ::1], int64[::1])",
    alone=True,
)
def play(
    plan_address: int,
    address: int,
    t: int,
    x,
    label,
    weight,
    prediction,
    probability,
    workspace,
    ballots,
    log,
    chances,
    subsets,
    state,
) -> int:
    """Let the forest at word t learn the rows of a stretch, and answer them, from its present state on.

    x: float64[n, d], label: int32[n], weight: float64[n], prediction: int32[n], probability: float64[n, K]
    (zeros) and workspace belong to the run (core/run.py); ballots: float64[member, row of the stretch, K +
    BALLOT_WORDS], or of size 0 where no worst member is replaced; log: float64[LOG_ROWS, LOG_SPLIT +
    SPLIT_WORDS + K]; chances: float64[MOST + 1] and subsets (``new_subsets``) are filled here; state:
    int64[STATE_WORDS]. Returns THROUGH; or the reason at a member (DECISION_DUE, GROW_FIRST, ALARMED); or
    LOG_FULL, after which the caller reads the log and sets LOGGED to 0.
    """
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    chances_of(params[plan[at.PLAN_LEARNER + 1]], chances)
    scratch, vote_buffer = row_of(workspace, 1), row_of(workspace, 2)
    room = Room(scratch, vote_buffer, start_of(chances), start_of(subsets), subsets.shape[0])
    first, end = state[FIRST], state[END]
    while state[MEMBER] < state[UNTIL]:
        for row in range(state[ROW], end):
            ints[at.MODEL_LABELS] = state[LABELS] + row - first
            if state[ANSWERS] != 0:
                ints[at.MODEL_RECORDS] = state[RECORDS] + row - first + 1
            state[ROW] = row
            record = row_of(x, row)
            xs = gather(plan, record, row_of(workspace, 0))
            if state[STEP] <= OWN_AGAIN:
                outcome = own_step(
                    plan,
                    params,
                    ints,
                    floats,
                    t,
                    record,
                    xs,
                    int(label[row]),
                    weight[row],
                    room,
                    row,
                    prediction,
                    probability,
                    ballots,
                    state,
                )
                if outcome == at.GROW_FIRST:
                    state[STEP] = OWN_AGAIN
                    return outcome
                write_log(plan, ints, floats, t, row, log, state)
                state[STEP] = BACKGROUND
            if of.of(plan, of.OF_SLOTS) > of.of(plan, of.OF_MEMBERS):
                outcome = background_step(
                    plan,
                    params,
                    ints,
                    floats,
                    t,
                    record,
                    xs,
                    int(label[row]),
                    weight[row],
                    room,
                    state,
                )
                if outcome == at.GROW_FIRST:
                    state[STEP] = BACKGROUND_AGAIN
                    return outcome
            state[STEP] = OWN
            if is_due(plan, ints, t, state[MEMBER]):
                state[ROW] = row + 1
                return at.DECISION_DUE
            if state[LOGGED] == LOG_ROWS:
                state[ROW] = row + 1
                return LOG_FULL
        state[MEMBER] += 1
        state[ROW] = first
    if find_worst(plan, ballots, probability.shape[1], state):
        return ALARMED
    if state[ANSWERS] != 0:
        count_votes(plan, ints, ballots, prediction, probability, state)
    ints[at.MODEL_LABELS], ints[at.MODEL_RECORDS] = state[LABELS], state[RECORDS]
    return THROUGH


@kernel("int64(int64, int64, int64, int64, int64)", alone=True)
def split_again(plan_address: int, address: int, t: int, node: int, said: int) -> int:
    """Attempt to split a leaf whose tree has been given room; return the outcome of ``attempt``.

    t, node: first words of the tree and of the leaf's node record; said: first of the words where the split
    is described (SPLIT_WORDS + K).
    """
    plan = plan_at(plan_address)
    ints, floats = words_at(address)
    words = part(floats, said, SPLIT_WORDS + plan.classes)
    return attempt_here(plan, Tree(ints, floats, t), Node(ints, floats, node), words)


@kernel
def own_step(
    plan,
    params,
    ints,
    floats,
    t: int,
    x,
    xs,
    label: int,
    weight: float,
    room,
    row: int,
    prediction,
    probability,
    ballots,
    state,
) -> int:
    """Let the member vote for a row and learn it, and note the alarm of its detectors.

    After GROW_FIRST it votes again with the changed tree, only to judge the member.
    """
    i, k, n = state[MEMBER], ints[at.MODEL_CLASSES], of.of(plan, of.OF_MEMBERS)
    scratch, vote_buffer = room.scratch, room.vote_buffer
    record = member_at(plan, t, i)
    tree = t + ints[record + of.TREE]
    own = part(scratch, behind(plan) + 3 * plan[at.PLAN_ATTRIBUTES], plan[at.PLAN_CLASSES])
    node = arrive(plan, ints, floats, tree, x, False, 0)
    seen, side_by_side = seen_by_tree(plan, ints, t, i, node, x, xs, room)
    predicted, hint = vote_seen(plan, params, ints, floats, tree, node, seen, side_by_side, scratch, own)
    is_worst = of.of(plan, of.OF_WORST) != 0
    if state[ANSWERS] != 0 and state[STEP] == OWN:
        count(ints, floats, tree, node, weight)
        ints[record + of.PLACE] = (node - tree - at.TREE_HEADER) // ints[tree + at.TREE_NODE_STRIDE]
        ints[record + of.VOTE], ints[record + of.HINT] = predicted, hint
        if n == 1:
            prediction[row] = predicted
        share = 1.0 if n == 1 else weight_of(plan, floats, record)
        for c in range(k):
            if is_worst:
                ballots[i, row - state[FIRST], c] = share * own[c]
            else:
                probability[row, c] += share * own[c]
    times_over = times_by(room.chances, plan, params, ints, i)
    if times_over > 0:
        outcome = train_seen(
            plan,
            params,
            ints,
            floats,
            tree,
            record,
            node,
            x,
            seen,
            side_by_side,
            label,
            times_over * weight,
            hint,
            scratch,
            vote_buffer,
            True,
        )
        if outcome == at.GROW_FIRST:
            return outcome
    judge(floats, record, weight, predicted == label)
    if is_watched(plan, times_over):
        if of.of(plan, of.OF_MOA) != 0:
            predicted, _ = vote_seen(plan, params, ints, floats, tree, node, seen, side_by_side, scratch, own)
        watch(plan, params, ints, floats, record, 0.0 if predicted == label else 1.0)
    if is_worst:
        drift, ballot = of.of(plan, of.OF_DRIFT), probability.shape[1]
        error = -1.0
        window = AdwinState(ints, floats, record + drift)
        if drift != 0 and window.width > 0.0:
            error = window.total / window.width
        ballots[i, row - state[FIRST], ballot + ERROR] = error
        ballots[i, row - state[FIRST], ballot + ALARM] = ints[record + of.ALARM]
        ints[record + of.ALARM] = of.QUIET
    return at.LEARNED


@kernel
def write_log(plan, ints, floats, t: int, row: int, log, state) -> None:
    """If the member's tree was split at this row, move the words that describe the split to the log."""
    record = member_at(plan, t, state[MEMBER])
    if ints[record + of.DUE] != of.TOLD:
        return
    ints[record + of.DUE] = 0
    at_log, words = state[LOGGED], record + of.of(plan, of.OF_EVENT)
    log[at_log, LOG_ROW], log[at_log, LOG_MEMBER] = row, state[MEMBER]
    for word in range(SPLIT_WORDS + plan[at.PLAN_CLASSES]):
        log[at_log, LOG_SPLIT + word] = floats[words + word]
        floats[words + word] = 0.0
    state[LOGGED] += 1


@kernel
def seen_by_tree(plan, ints, t: int, slot: int, node: int, x, xs, room) -> tuple[Any, Any]:
    """Return a record, and its numeric attributes, as the leaf of a member's tree or background tree sees it.

    A subset that is still in ``room`` is not sampled again.
    """
    m, d = of.of(plan, of.OF_ATTRIBUTES), plan[at.PLAN_ATTRIBUTES]
    if m == 0:
        return x, xs
    record = member_at(plan, t, slot)
    serial, leaf = ints[record + of.SERIAL], 0
    if of.of(plan, of.OF_SUBSPACES) == 0:
        leaf = number_of(ints, t + ints[record + of.TREE], node)
    # A member and its background tree take turns: their leaves have separate rows.
    row = 2 * leaf + int(slot >= of.of(plan, of.OF_MEMBERS))
    subset = part(room.subsets, (row & (room.rows - 1)) * (SUBSET_FIELDS + d), SUBSET_FIELDS + d)
    chosen = part(subset, SUBSET_FIELDS, d)
    if subset[SUBSET_SERIAL] != serial + 1 or subset[SUBSET_LEAF] != leaf:
        draw_subset(plan, serial, leaf, m, chosen)
        subset[SUBSET_SERIAL], subset[SUBSET_LEAF] = serial + 1, leaf
    return masked(plan, x, chosen, part(room.scratch, behind(plan), 2 * d))


@kernel
def background_step(
    plan,
    params,
    ints,
    floats,
    t: int,
    x,
    xs,
    label: int,
    weight: float,
    room,
    state,
) -> int:
    """Let the member's background tree, if there is one, learn a row that the member learns."""
    i, scratch = state[MEMBER], room.scratch
    slot = i + of.of(plan, of.OF_MEMBERS)
    record = member_at(plan, t, slot)
    times_over = times_by(room.chances, plan, params, ints, i)
    if ints[record + of.TREE] == 0 or times_over == 0:
        return at.LEARNED
    tree = t + ints[record + of.TREE]
    node = arrive(plan, ints, floats, tree, x, False, 0)
    if state[STEP] != BACKGROUND_AGAIN:
        count(ints, floats, tree, node, weight)
    seen, side_by_side = seen_by_tree(plan, ints, t, slot, node, x, xs, room)
    mass = weight if of.of(plan, of.OF_ONCE) != 0 else times_over * weight
    nothing: Any = np.int64(-1)  # not a literal, which would have another type
    return train_seen(
        plan,
        params,
        ints,
        floats,
        tree,
        record,
        node,
        x,
        seen,
        side_by_side,
        label,
        mass,
        nothing,
        scratch,
        room.vote_buffer,
        False,
    )


@kernel
def is_due(plan, ints, t: int, i: int) -> bool:
    """Return whether a decision is due at a member or its background tree."""
    record = member_at(plan, t, i)
    is_member_due = ints[record + of.DUE] != 0 or ints[record + of.ALARM] != of.QUIET
    n = of.of(plan, of.OF_MEMBERS)
    if is_member_due or of.of(plan, of.OF_SLOTS) == n:
        return is_member_due
    return bool(ints[member_at(plan, t, i + n) + of.DUE] != 0)


@kernel
def find_worst(plan, ballots, k: int, state) -> bool:
    """Find the next row with an alarm, and the member with the largest error there, the first of equals."""
    if of.of(plan, of.OF_WORST) == 0:
        return False
    for row in range(state[CHECKED], state[END]):
        at_row, is_alarmed = row - state[FIRST], False
        worst, largest = 0, -1.0
        for i in range(of.of(plan, of.OF_MEMBERS)):
            is_alarmed |= ballots[i, at_row, k + ALARM] != of.QUIET
            if ballots[i, at_row, k + ERROR] > largest:
                worst, largest = i, ballots[i, at_row, k + ERROR]
        if is_alarmed:
            state[MEMBER], state[ROW], state[CHECKED] = worst, row, row + 1
            return True
    return False


@kernel
def count_votes(plan, ints, ballots, prediction, probability, state) -> None:
    """Add up the votes of all members in each row, unless that is done, and write the forest's class."""
    n, k = of.of(plan, of.OF_MEMBERS), ints[at.MODEL_CLASSES]
    for row in range(state[FIRST], state[END]):
        if of.of(plan, of.OF_WORST) != 0:
            for i in range(n):
                for c in range(k):
                    probability[row, c] += ballots[i, row - state[FIRST], c]
        if n > 1:
            prediction[row] = normalise(row_of(probability, row), k)
