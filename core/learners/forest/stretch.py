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
more such dependencies have no stretches (``PlanRecord.stretch``).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from core.kernels.jit import kernel, part, row_of, start_of
from core.kernels.records import Record, name_tuple, word
from core.layout.learning import DECISION_DUE, GREW, GROW_FIRST, LEARNED, Row, Work
from core.layout.model import Floats
from core.layout.plan import PlanRecord
from core.layout.tree import Node, Tree
from core.learners.forest.layout import QUIET, SPLIT_MADE, ForestBlock, Member, forest_plan, mean_repeats
from core.learners.forest.member import (
    Arrival,
    arrive_in,
    error_rate,
    is_watched,
    judge,
    member_shares,
    normalise,
    split_words,
    train_seen,
    vote_seen,
    watch,
    weight_of,
)
from core.learners.forest.resampling import MOST, chances_of, draw_subset, masked, times_by
from core.learners.hoeffding.plain_split import SPLIT_WORDS
from core.learners.hoeffding.split_attempt import attempt_here
from core.tree.columns import gather, unused_scratch
from core.tree.routing import count

# Steps of a member in a row
OWN: Final = 0
"""The member votes and learns."""
OWN_AGAIN: Final = 1
"""The same, after its tree has grown for the row."""
BACKGROUND: Final = 2
"""The member's background tree learns."""
BACKGROUND_AGAIN: Final = 3
"""The same, after the background tree has grown for the row."""

# Reasons to return, in addition to DECISION_DUE and GROW_FIRST
THROUGH: Final = LEARNED
ALARMED: Final = GREW + 1
"""The worst member, ``Progress.member``, has to start again after ``Progress.row``."""
LOG_FULL: Final = ALARMED + 1


class Progress(Record):
    """How far the members have gone through the rows of a stretch."""

    first: int = word("first row")
    end: int = word("the row after the last")
    member: int = word("the member that goes through the rows")
    until: int = word("the member after the last one of this pass")
    row: int = word("the row that the member has reached")
    step: int = word("the member's step in this row: OWN … BACKGROUND_AGAIN")
    answers: int = word("1: the rows are answered, too; 0: they were answered before")
    records: int = word("records that the model had answered before the first row")
    labels: int = word("labels that the model had learned before the first row")
    checked: int = word("first row whose alarms were not handled, where the worst member is replaced")
    logged: int = word("splits in the log")


class Columns(NamedTuple):
    """The columns of a run (``core.learners.protocol.Stretch``)."""

    x: Any
    label: Any
    weight: Any
    prediction: Any
    probability: Any


name_tuple(Columns, "float64[:, ::1]", "int32[::1]", "float64[::1]", "int32[::1]", "float64[:, ::1]")

# Words of a row of the log of splits in compiled code; the words that describe the split follow
LOG_ROW: Final = 0
LOG_MEMBER: Final = 1
LOG_SPLIT: Final = 2
LOG_ROWS: Final = 256

# Words of a row of the sampled subsets, each kept until another subset replaces it; float64[d] follow
SUBSET_SERIAL: Final = 0
"""Number of the tree plus one; 0: empty."""
SUBSET_LEAF: Final = 1
SUBSET_FIELDS: Final = 2
SUBSET_ROWS: Final = 512
SUBSET_WORDS: Final = 1 << 15
"""Words of all rows; there is at least one row."""

# Words of the ballot of a member in a row, after its class shares
ERROR: Final = 0
"""The error rate in the member's window after the row; -1: not known."""
ALARM: Final = 1
"""Alarm of the member's detectors."""
BALLOT_WORDS: Final = 2


class Buffers(NamedTuple):
    """Arrays that a stretch writes to."""

    workspace: Any
    """The run's (core/run.py)."""
    ballots: Any
    """float64[member, row of the stretch, K + BALLOT_WORDS]; empty where no worst member is replaced."""
    log: Any
    """float64[LOG_ROWS, LOG_SPLIT + SPLIT_WORDS + K]"""
    chances: Any
    """float64[MOST + 1]: of the numbers of times that a member learns a record (``chances_of``)."""
    subsets: Any
    """float64[row, SUBSET_FIELDS + attribute]; the number of rows is a power of two."""


name_tuple(
    Buffers, "float64[:, ::1]", "float64[:, :, ::1]", "float64[:, ::1]", "float64[::1]", "float64[:, ::1]"
)


class MemberWords(NamedTuple):
    """Words that each member in its turn writes to."""

    work: Any
    chances: Any
    subsets: Any
    subset_rows: int


def new_buffers(workspace: Floats, ballots: tuple[int, int, int], classes: int, attributes: int) -> Buffers:
    """Return the buffers of a stretch; ballots: the shape of these."""
    return Buffers(
        workspace,
        np.empty(ballots),
        np.empty((LOG_ROWS, LOG_SPLIT + SPLIT_WORDS + classes)),
        np.empty(MOST + 1),
        new_subsets(attributes),
    )


def new_subsets(attributes: int) -> Floats:
    """Return room for subsets of this number of attributes (``Buffers.subsets``)."""
    words, rows = SUBSET_FIELDS + attributes, SUBSET_ROWS
    while rows > 1 and rows * words > SUBSET_WORDS:
        rows //= 2
    return np.zeros((rows, words))


@kernel("int64(PlanRecord, ForestBlock, Columns, Buffers, Progress)", alone=True)
def play(
    plan: PlanRecord, forest: ForestBlock, columns: Columns, buffers: Buffers, progress: Progress
) -> int:
    """Let a forest learn the rows of a stretch, and answer them, from the present progress on.

    Returns THROUGH; or the reason at a member (DECISION_DUE, GROW_FIRST, ALARMED); or LOG_FULL, after which
    the caller reads the log and sets ``progress.logged`` to 0.
    """
    model, forests = forest.model, forest_plan(plan)
    workspace, subsets = buffers.workspace, buffers.subsets
    chances_of(mean_repeats(plan), buffers.chances)
    work = Work(row_of(workspace, 1), row_of(workspace, 2))
    words = MemberWords(work, start_of(buffers.chances), start_of(subsets), subsets.shape[0])
    while progress.member < progress.until:
        for number in range(progress.row, progress.end):
            model.labels = progress.labels + number - progress.first
            if progress.answers != 0:
                model.records = progress.records + number - progress.first + 1
            progress.row = number
            x = row_of(columns.x, number)
            xs = gather(plan, x, row_of(workspace, 0))
            row = Row(x, xs, int(columns.label[number]), columns.weight[number])
            if progress.step <= OWN_AGAIN:
                outcome = own_step(plan, forest, row, words, columns, buffers.ballots, progress)
                if outcome == GROW_FIRST:
                    progress.step = OWN_AGAIN
                    return outcome
                write_log(plan, forest, buffers.log, progress)
                progress.step = BACKGROUND
            if forests.slots > forests.members:
                outcome = background_step(plan, forest, row, words, progress)
                if outcome == GROW_FIRST:
                    progress.step = BACKGROUND_AGAIN
                    return outcome
            progress.step = OWN
            if is_due(plan, forest, progress.member):
                progress.row = number + 1
                return DECISION_DUE
            if progress.logged == LOG_ROWS:
                progress.row = number + 1
                return LOG_FULL
        progress.member += 1
        progress.row = progress.first
    if find_worst(plan, buffers.ballots, columns.probability.shape[1], progress):
        return ALARMED
    if progress.answers != 0:
        count_votes(plan, forest, columns, buffers.ballots, progress)
    model.labels, model.records = progress.labels, progress.records
    return THROUGH


@kernel("int64(PlanRecord, Member, Tree, Node)", alone=True)
def split_again(plan: PlanRecord, member: Member, tree: Tree, node: Node) -> int:
    """Attempt to split a leaf whose tree has been given room; return the outcome of ``attempt``.

    The split is described in the member record.
    """
    return attempt_here(plan, tree, node, split_words(plan, member))


@kernel
def own_step(
    plan: PlanRecord,
    forest: ForestBlock,
    row: Row,
    words: MemberWords,
    columns: Columns,
    ballots,
    progress: Progress,
) -> int:
    """Let the member vote for a row and learn it, and note the alarm of its detectors.

    After GROW_FIRST it votes again with the changed tree, only to judge the member.
    """
    forests, i, scratch = forest_plan(plan), progress.member, words.work.scratch
    member = forest.member(plan, i)
    leaf_shares = member_shares(plan, scratch)
    arrival = arrive_in(plan, forest, member, row.x, False, 0)
    seen = seen_by_tree(plan, arrival, i, row, words)
    predicted, hint = vote_seen(plan, arrival, seen, scratch, leaf_shares)
    if progress.answers != 0 and progress.step == OWN:
        count(arrival.tree, arrival.node, row.weight)
        member.place = arrival.tree.number(arrival.node)
        member.vote, member.hint = predicted, hint
        cast_vote(plan, forest, member, leaf_shares, columns, ballots, progress)
    times_over = times_by(words.chances, plan, forest.model, i)
    if times_over > 0:
        repeated = Row(seen.x, seen.xs, row.label, times_over * row.weight)
        outcome = train_seen(plan, arrival, row.x, repeated, hint, words.work, True)
        if outcome == GROW_FIRST:
            return outcome
    judge(member, row.weight, predicted == row.label)
    if is_watched(plan, times_over):
        if forests.moa != 0:
            predicted, _ = vote_seen(plan, arrival, seen, scratch, leaf_shares)
        watch(plan, member, 0.0 if predicted == row.label else 1.0)
    if forests.worst != 0:
        at_row, k = progress.row - progress.first, columns.probability.shape[1]
        ballots[i, at_row, k + ERROR] = error_rate(plan, member)
        ballots[i, at_row, k + ALARM] = member.alarm
        member.alarm = QUIET
    return LEARNED


@kernel
def cast_vote(
    plan: PlanRecord,
    forest: ForestBlock,
    member: Member,
    leaf_shares,
    columns: Columns,
    ballots,
    progress: Progress,
) -> None:
    """Add the class shares of the member (leaf_shares: float64[class]) to the forest's answer for the row.

    Where the worst member is replaced they go to the ballots: members may go through the row again.
    """
    forests, row = forest_plan(plan), progress.row
    if forests.members == 1:
        columns.prediction[row] = member.vote
    share = 1.0 if forests.members == 1 else weight_of(plan, member)
    for c in range(forest.model.classes):
        if forests.worst != 0:
            ballots[progress.member, row - progress.first, c] = share * leaf_shares[c]
        else:
            columns.probability[row, c] += share * leaf_shares[c]


@kernel
def write_log(plan: PlanRecord, forest: ForestBlock, log, progress: Progress) -> None:
    """If the member's tree was split at this row, move the words that describe the split to the log."""
    member = forest.member(plan, progress.member)
    if member.due != SPLIT_MADE:
        return
    member.due = 0
    described, entry = split_words(plan, member), progress.logged
    log[entry, LOG_ROW], log[entry, LOG_MEMBER] = progress.row, progress.member
    for i in range(SPLIT_WORDS + plan.classes):
        log[entry, LOG_SPLIT + i] = described[i]
        described[i] = 0.0
    progress.logged += 1


@kernel
def seen_by_tree(plan: PlanRecord, arrival: Arrival, slot: int, row: Row, words: MemberWords) -> Row:
    """Return a record as the leaf of a member's tree or background tree sees it.

    A subset that is still in ``words.subsets`` is not sampled again.
    """
    forests, d = forest_plan(plan), plan.attributes
    if forests.attributes == 0:
        return row
    serial, leaf = arrival.member.serial, 0
    if forests.subspaces == 0:
        leaf = arrival.tree.number(arrival.node)
    # A member and its background tree take turns: their leaves have separate rows.
    place = (2 * leaf + int(slot >= forests.members)) & (words.subset_rows - 1)
    subset = part(words.subsets, place * (SUBSET_FIELDS + d), SUBSET_FIELDS + d)
    chosen = part(subset, SUBSET_FIELDS, d)
    if subset[SUBSET_SERIAL] != serial + 1 or subset[SUBSET_LEAF] != leaf:
        draw_subset(plan, serial, leaf, chosen)
        subset[SUBSET_SERIAL], subset[SUBSET_LEAF] = serial + 1, leaf
    x, xs = masked(plan, row.x, chosen, part(words.work.scratch, unused_scratch(plan), 2 * d))
    return Row(x, xs, row.label, row.weight)


@kernel
def background_step(
    plan: PlanRecord, forest: ForestBlock, row: Row, words: MemberWords, progress: Progress
) -> int:
    """Let the member's background tree, if there is one, learn a row that the member learns."""
    forests = forest_plan(plan)
    slot = progress.member + forests.members
    member = forest.member(plan, slot)
    times_over = times_by(words.chances, plan, forest.model, progress.member)
    if member.tree == 0 or times_over == 0:
        return LEARNED
    arrival = arrive_in(plan, forest, member, row.x, False, 0)
    if progress.step != BACKGROUND_AGAIN:
        count(arrival.tree, arrival.node, row.weight)
    seen = seen_by_tree(plan, arrival, slot, row, words)
    mass = row.weight if forests.once != 0 else times_over * row.weight
    repeated = Row(seen.x, seen.xs, row.label, mass)
    no_hint: Any = np.int64(-1)  # not a literal, which would have another type
    return train_seen(plan, arrival, row.x, repeated, no_hint, words.work, False)


@kernel
def is_due(plan: PlanRecord, forest: ForestBlock, i: int) -> bool:
    """Return whether a decision is due at a member or its background tree."""
    forests, member = forest_plan(plan), forest.member(plan, i)
    is_member_due = member.due != 0 or member.alarm != QUIET
    if is_member_due or forests.slots == forests.members:
        return is_member_due
    return bool(forest.member(plan, i + forests.members).due != 0)


@kernel
def find_worst(plan: PlanRecord, ballots, k: int, progress: Progress) -> bool:
    """Find the next row with an alarm, and the member with the largest error there, the first of equals."""
    if forest_plan(plan).worst == 0:
        return False
    for row in range(progress.checked, progress.end):
        at_row, is_alarmed = row - progress.first, False
        worst, largest = 0, -1.0
        for i in range(forest_plan(plan).members):
            is_alarmed |= ballots[i, at_row, k + ALARM] != QUIET
            if ballots[i, at_row, k + ERROR] > largest:
                worst, largest = i, ballots[i, at_row, k + ERROR]
        if is_alarmed:
            progress.member, progress.row, progress.checked = worst, row, row + 1
            return True
    return False


@kernel
def count_votes(plan: PlanRecord, forest: ForestBlock, columns: Columns, ballots, progress: Progress) -> None:
    """Add up the votes of all members in each row, unless that is done, and write the forest's class."""
    forests, k = forest_plan(plan), forest.model.classes
    probability = columns.probability
    for row in range(progress.first, progress.end):
        if forests.worst != 0:
            for i in range(forests.members):
                for c in range(k):
                    probability[row, c] += ballots[i, row - progress.first, c]
        if forests.members > 1:
            columns.prediction[row] = normalise(row_of(probability, row), k)
