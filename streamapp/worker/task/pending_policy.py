"""Pending policy: which answered instances wait for their label, and which of them ask for it.

An instance with a known id is a repeated instance: it is answered like any other, but its label is not
requested again and it does not replace the pending instance. If it has its own label, that settles the
pending instance.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from core.active.label_account import ANSWERED, DECLINED
from core.layout.measures import MOST_CLASSES
from core.layout.published import KNOWN, RAW, REBUILDS
from core.state_version import MEASURES_SINCE
from streamapp.worker.task import counters
from streamapp.worker.task.challenges.challenged_answers import ChallengedRows
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.effects.label_requests import label_requests
from streamapp.worker.task.label_review import ReviewedRun
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.pending.entries import Kept
from topics.columns.records import Floats, Ints32, Ints64

Mask = npt.NDArray[np.bool_]


class AnsweredRun(ReviewedRun, Protocol):
    """The attributes of a run of n answered instances that are used here."""

    state: PartitionState
    effects: Effects
    scale: Floats | None  # float64[n]: factors of their labels' weights; None: 1
    words: Ints64 | None  # int64[w]: of its episode, for a run of one row, whose label is learned with them
    challenged: ChallengedRows

    @property
    def frozen(self) -> Mask:
        """bool[n]: rows whose models are frozen."""

    @property
    def width(self) -> Ints32:
        """int32[n]: the attributes of each row's model when it answered."""

    def features_of(self, rows: Ints64) -> Floats:
        """Return float64[m, D]: the features of rows (int64[m])."""


def keep_and_request(run: AnsweredRun) -> None:
    """Remember the instances that wait for their label, and request the labels that the strategy selected."""
    state, batch, effects = run.state, run.batch, run.effects
    if state.review is not None:
        state.review.answered(run)
    rows = keep_pending(run).nonzero()[0]
    effects.count(counters.REQUESTED, len(rows))
    if len(rows):
        expires = run.clocks[rows] + state.config.pending_ttl_ms
        effects.requests.append(
            label_requests(run.raw, batch, rows, run.model, state.store, run.replies, expires)
        )


def keep_pending(run: AnsweredRun) -> Mask:
    """Remember the instances that wait for their label; return bool[n]: rows whose label is requested."""
    pending, replies = run.state.pending, run.replies
    asked = replies.asked
    to_keep = asked
    if run.state.config.pending_keep == "all":
        to_keep = replies.answered & ~run.labelled & ~run.frozen
    kept = to_keep.nonzero()[0]
    if not len(kept) and not len(pending):
        return asked
    special = _special(run, kept)
    if special:
        asked = asked.copy()
        kept = kept[~np.isin(kept, special)]
    start = 0
    for row in special:
        stop = int(np.searchsorted(kept, row))
        pending.keep(_columns(run, kept[start:stop], asked))
        _keep_special(run, row, to_keep, asked)
        start = stop
    pending.keep(_columns(run, kept[start:], asked))
    return asked


def _special(run: AnsweredRun, kept: Ints64) -> list[int]:
    """Return the rows whose id is remembered, or occurs more than once in this run and is to be kept."""
    names, answered = run.names, run.replies.answered
    is_special = run.state.pending.serials(names) >= 0
    if len(kept):
        codes, times = names.codes, np.bincount(names.codes, answered)
        is_new = np.zeros(len(times), dtype=np.bool_)
        is_new[codes[kept]] = True
        is_special |= (is_new & (times > 1))[codes]
    special_rows: list[int] = np.flatnonzero(is_special & answered).tolist()
    return special_rows


def _keep_special(run: AnsweredRun, row: int, to_keep: Mask, asked: Mask) -> None:
    pending, name = run.state.pending, run.names[row : row + 1]
    serial, state = pending.state_of(int(pending.serials(name)[0]), int(run.clocks[row]))
    if state in ("open", "settled"):
        run.effects.count(counters.REPEATED)
        if asked[row]:  # counted in the model's account, but no request is sent
            asked[row] = False
            pending.close(int(run.model[row]), DECLINED)
        if state == "open" and run.labelled[row]:
            if pending.answered(serial)[1]:
                pending.close(int(run.model[row]), ANSWERED)
            pending.settle(serial)
    elif to_keep[row]:
        pending.keep(_columns(run, np.array([row]), asked))


def _columns(run: AnsweredRun, rows: Ints64, asked: Mask) -> Kept:
    whole = len(rows) == len(run.names)
    names = run.names if whole else run.names.where(rows)
    shares, episode = _number_of_shares(run, rows), 0
    x = _followed(run.features_of(rows), run.width[rows], run.replies.probability[rows], shares)
    width = run.width[rows] + shares
    report = _reported(run, rows)
    if report is not None and run.replies.report is not None:
        x = _followed(x, width, run.replies.report[rows], report)
        width = width + report
    if run.words is not None and len(rows):
        episode = len(run.words)
        x = _followed(x, width, run.words.view(np.float64)[np.newaxis], np.full(1, episode, np.int32))
        width = width + np.int32(episode)
    return Kept(
        names,
        run.model[rows].astype(np.int32),
        x,
        width,
        run.replies.prediction[rows],
        asked[rows],
        run.replies.sampled[rows],
        run.replies.importance[rows],
        run.clocks[rows],
        None if run.scale is None else run.scale[rows],
        episode,
        shares,
        *run.challenged.columns(rows),
        report,
    )


def _reported(run: AnsweredRun, rows: Ints64) -> Ints32 | None:
    """Return int32[m]: the words of reports to keep; None: no row has any."""
    if run.replies.report is None or run.replies.report.shape[1] == RAW or not len(rows):
        return None
    report = run.replies.report[rows]
    classes, is_raw = report[:, KNOWN], ~np.isnan(report[:, RAW])
    words = np.where(is_raw, RAW + classes, REBUILDS)  # without raw shares their tree is of no interest
    number: Ints32 = np.where(classes >= 1.0, words, 0.0).astype(np.int32)
    return number if number.any() else None


def _number_of_shares(run: AnsweredRun, rows: Ints64) -> Ints32:
    """Return int32[m]: the class shares to keep, none of rows without an answer, or with too many classes.

    A replay of a release without measures keeps none: they count for `pending.max.bytes`, and a full store
    would forget other entries than that release did.
    """
    known = run.replies.known[rows]
    keeps = known <= MOST_CLASSES
    if run.replies.report is not None:  # the label is judged by its probability
        keeps |= run.replies.report[rows, KNOWN] >= 1.0
    keeps &= run.replies.prediction[rows] >= 0
    keeps &= run.state.config.state_version >= MEASURES_SINCE
    number: Ints32 = np.where(keeps, known, 0).astype(np.int32)
    return number


def _followed(x: Floats, width: Ints32, more: Floats, number: Ints32) -> Floats:
    """Return rows of x with the first `number` columns of `more` after the first `width` of theirs."""
    if not len(x) or not number.any():
        return x
    width_of_all, number_of_all = int(width[0]), int(number[0])
    if (width == width_of_all).all() and (number == number_of_all).all():
        return np.concatenate((x[:, :width_of_all], more[:, :number_of_all]), axis=1)
    columns = np.arange(int(number.max()))
    followed = np.concatenate((x, np.zeros((len(x), len(columns)))), axis=1)
    row, column = np.nonzero(columns < number[:, np.newaxis])
    followed[row, width[row] + column] = more[row, column]
    return followed
