"""Pending policy: which answered instances wait for their label, and which of them ask for it.

An id that is known already is a repeated instance: it is answered like any other, but its label is not asked
for again and it does not replace the pending instance. If it has its own label, that settles the pending
instance.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import numpy as np
import numpy.typing as npt

from core.active.label_account import ANSWERED, DECLINED
from streamapp.task import counters
from streamapp.task.effects.effects import Effects
from streamapp.task.effects.replies import Replies
from streamapp.task.partition_state import PartitionState
from streamapp.task.pending.entries import Kept, Name
from topics.records import Floats, Ints32, Ints64

Mask = npt.NDArray[np.bool_]


class AnsweredRun(Protocol):
    """A run of n instances that were answered, as far as it is looked at here."""

    state: PartitionState
    effects: Effects
    replies: Replies
    model: Ints64  # int64[n]
    labelled: Mask  # bool[n]
    frozen: Mask  # bool[n]
    width: Ints32  # int32[n]
    scale: Floats | None  # float64[n]: what the weights of their labels are multiplied by; None: 1
    words: Ints64 | None  # int64[w]: of its episode, of a run of one row, whose label is learned with them

    @property
    def names(self) -> list[Name]:
        """Model key and id of each row."""

    @property
    def clocks(self) -> Ints64:
        """int64[n]: the clock at each row."""

    def features_of(self, rows: Ints64) -> Floats:
        """Return float64[m, D]: the features of rows (int64[m])."""


def keep_pending(run: AnsweredRun) -> Mask:
    """Remember the instances that wait for their label; return bool[n]: whose label is to be requested."""
    pending, replies = run.state.pending, run.replies
    asked = replies.asked
    wanted = asked
    if run.state.config.pending_keep == "all":
        wanted = replies.answered & ~run.labelled & ~run.frozen
    kept = np.flatnonzero(wanted)
    if not len(kept) and not len(pending):
        return asked
    special = _special(run, kept)
    if special:
        asked = asked.copy()
        kept = kept[~np.isin(kept, special)]
    start = 0
    for row in special:
        stop = int(np.searchsorted(kept, row))
        pending.keep(_columns(run, kept[start:stop], asked), new=True)
        _keep_special(run, row, wanted, asked)
        start = stop
    pending.keep(_columns(run, kept[start:], asked), new=True)
    return asked


def _special(run: AnsweredRun, kept: Ints64) -> list[int]:
    """Return the rows whose id is remembered, or comes more than once in this run and is to be kept."""
    names, answered = run.names, run.replies.answered
    rows = range(len(names)) if answered.all() else np.flatnonzero(answered).tolist()
    present = names if answered.all() else [names[row] for row in rows]
    new = set(names if len(kept) == len(names) else map(names.__getitem__, kept.tolist()))
    alone = len(new) == len(kept)
    if alone and 0 < len(new) < len(present):
        alone = sum(map(new.__contains__, present)) == len(new)
    if alone and run.state.pending.knows_none_of(present):
        return []
    times = Counter(present)
    remembers = run.state.pending.remembers
    return [
        row
        for row, name in zip(rows, present, strict=True)
        if remembers(name) or (name in new and times[name] > 1)
    ]


def _keep_special(run: AnsweredRun, row: int, wanted: Mask, asked: Mask) -> None:
    pending, name = run.state.pending, run.names[row]
    serial, state = pending.find(name, int(run.clocks[row]))
    if state in ("open", "settled"):
        run.effects.count(counters.REPEATED)
        if asked[row]:  # counted in the model's account, but no request is sent
            asked[row] = False
            pending.close(int(run.model[row]), DECLINED)
        if state == "open" and run.labelled[row]:
            if pending.answered(serial)[1]:
                pending.close(int(run.model[row]), ANSWERED)
            pending.settle(serial)
    elif wanted[row]:
        pending.keep(_columns(run, np.array([row]), asked))


def _columns(run: AnsweredRun, rows: Ints64, asked: Mask) -> Kept:
    whole = len(rows) == len(run.names)
    names: list[Name] = run.names if whole else [run.names[row] for row in rows.tolist()]
    x, width, episode = run.features_of(rows), run.width[rows], 0
    if run.words is not None and len(rows):
        episode = len(run.words)
        x = np.concatenate((x, run.words.view(np.float64)[np.newaxis]), axis=1)
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
    )
