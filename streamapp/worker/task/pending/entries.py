"""Entries of pending instances: the layout of rows and words, instances to keep, and an image of all.

A row holds the identity and the outcome of an instance; its features are in the words, `width` of them from
`start` on. The last `episode` of these are not features: they are the words (int64) of the episode from which
the instance was answered, and with which its label is learned. The `shares` words before them are the class
shares of the answer, for the measures per class (core/measures). Between both are the `report` words of an
answer with calibrated probabilities or a set (core/layout/published.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from core.active.disagreement import NOT_DRAWN
from streamapp.worker.task.pending.name_columns import Name, Names
from streamapp.worker.task.pending.name_index import StoredNames

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

ENTRY_BYTES: Final = 320
"""Counted bytes of an entry in addition to its features: id, name, place in the index, row. It takes about
half of that (the unit test measures it); the number must not change, because it determines which entries are
forgotten.
"""

NOT_CHALLENGED: Final = -2
"""Class of a challenger's answer where there was no challenger; -1: it has learned no class."""

NAME_BYTES: Final = 64
"""Bytes of a model key and an id together that `ENTRY_BYTES` includes; longer names count in addition."""

GAPS: Final = 1024
"""The most unused words between those in use before words are moved, and the free words after a move."""

ROW: Final = np.dtype(
    [
        ("born", np.int64),  # clock when it was answered
        ("start", np.int64),  # of its features in the words
        ("older", np.int64),  # serial of the expired entry of the same name it replaced, or -1
        ("model", np.int32),
        (
            "width",
            np.int32,
        ),  # number of features, class shares, words of its report, words of its episode
        ("episode", np.int32),  # how many of them are words of its episode
        ("shares", np.int32),  # how many of them are class shares
        ("report", np.int32),  # how many of them are words of its report
        ("text", np.int32),  # bytes of its name beyond NAME_BYTES
        ("prediction", np.int32),  # class code answered, -1: none
        ("requested", np.bool_),
        ("importance", np.float64),  # inverse-probability weight of its label (core/active/label_query.py)
        ("scale", np.float64),  # factor of its label's weight (core/active/acquirers)
        ("sampled", np.int8),  # whether and for what it was sampled (core/active/label_account.py)
        ("challenger", np.int32),  # class code that the challenger answered
        (
            "octave",
            np.int8,
        ),  # of its draw for the comparison with the challenger (core/active/disagreement.py)
        ("settled", np.bool_),
        ("struck", np.bool_),  # its name was taken out of the index
    ]
)


class Kept(NamedTuple):
    """Instances to keep: m rows in order of arrival, no two with the same name."""

    names: Sequence[Name]
    model: Ints32  # int32[m] model in the table
    x: Floats  # float64[m, D]; columns beyond a row's width are not kept, its last columns are its episode's
    width: Ints32  # int32[m]
    prediction: Ints32  # int32[m]
    requested: Mask  # bool[m]
    sampled: npt.NDArray[np.int8]  # int8[m]
    importance: Floats  # float64[m]
    born: Ints64  # int64[m] clock at the record, ascending
    scale: Floats | None = None  # float64[m]: factors of their labels' weights; None: 1
    episode: int = 0  # words of an episode at the end of each row's width
    shares: Ints32 | None = None  # int32[m]: class shares before these; None: no row has any
    challenger: Ints32 | None = None  # int32[m]: class that the challenger answered; None: no row has one
    octave: npt.NDArray[np.int8] | None = None  # int8[m]: of the draw for the comparison; None: no row's
    report: Ints32 | None = None  # int32[m]: words of reports after the shares; None: no row has any

    def slice(self, start: int, stop: int) -> Kept:
        """Return the rows from `start` to before `stop`."""
        cut = slice(start, stop)
        return Kept(
            self.names[cut],
            self.model[cut],
            self.x[cut],
            self.width[cut],
            self.prediction[cut],
            self.requested[cut],
            self.sampled[cut],
            self.importance[cut],
            self.born[cut],
            None if self.scale is None else self.scale[cut],
            self.episode,
            None if self.shares is None else self.shares[cut],
            None if self.challenger is None else self.challenger[cut],
            None if self.octave is None else self.octave[cut],
            None if self.report is None else self.report[cut],
        )

    def fill(self, rows: npt.NDArray[np.void]) -> None:
        """Write the columns to rows (ROW[m]), apart from places and bytes."""
        rows["born"], rows["model"], rows["width"] = self.born, self.model, self.width
        rows["prediction"], rows["requested"] = self.prediction, self.requested
        rows["sampled"], rows["importance"], rows["struck"] = self.sampled, self.importance, False
        rows["scale"] = 1.0 if self.scale is None else self.scale
        rows["episode"], rows["shares"] = self.episode, 0 if self.shares is None else self.shares
        rows["report"] = 0 if self.report is None else self.report
        rows["challenger"] = NOT_CHALLENGED if self.challenger is None else self.challenger
        rows["octave"] = NOT_DRAWN if self.octave is None else self.octave


class PendingImage(NamedTuple):
    """All pending instances at one moment; later changes do not affect it."""

    first: int  # serial of rows[0]
    live: int
    next: int
    closed_to: int  # the requests of entries before this serial are closed
    tick: int
    closings: Mapping[tuple[int, int], int]
    rows: npt.NDArray[np.void]  # ROW[next - first]; the current `settled` and `struck` are below
    settled: Mask  # bool[next - first]
    struck: Mask  # bool[next - first]
    names: StoredNames | Names
    words: Floats
    turned: int = 0  # how often the clock was turned back, which changes `born`

    @property
    def borders(self) -> tuple[int, int, int, int, int]:
        """First, live, next, closed_to and tick."""
        return self.first, self.live, self.next, self.closed_to, self.tick

    @property
    def holds(self) -> Mask:
        """bool[next - first]: whether the features of an entry are there."""
        holds = ~self.settled
        holds[: self.live - self.first] = False
        return holds


class Mark(NamedTuple):
    """The borders and counts at a checkpoint, to which `rollback` returns."""

    first: int
    live: int
    next: int
    n_words: int
    text: int
    bytes: int
    expired: int
    dropped: int
    closed_to: int
    tick: int
    closings: Counter[tuple[int, int]] | None  # None: there were none


def features_of(rows: npt.NDArray[np.void], words: Floats, n_columns: int) -> Floats:
    """Return float64[m, n_columns]: the features of rows (ROW[m]), NaN in columns they do not have."""
    x = np.full((len(rows), n_columns), np.nan)
    features = rows["width"] - rows["episode"] - rows["shares"] - rows["report"]
    for width in np.unique(features).tolist():
        of_width = np.flatnonzero(features == width)
        places = rows["start"][of_width, np.newaxis] + np.arange(width)
        x[of_width[:, np.newaxis], np.arange(width)] = words[places]
    return x


def shares_of(rows: npt.NDArray[np.void], words: Floats) -> Floats:
    """Return float64[m, k]: the class shares of rows (ROW[m]), zeros where a row has none or fewer."""
    return _words_of(rows, "shares", rows["episode"] + rows["report"], words, 0.0)


def report_of(rows: npt.NDArray[np.void], words: Floats) -> Floats:
    """Return float64[m, k]: the reports of rows (ROW[m]), NaN where a row has none or a shorter one."""
    return _words_of(rows, "report", rows["episode"], words, np.nan)


def _words_of(rows: npt.NDArray[np.void], name: str, after: Ints32, words: Floats, fill: float) -> Floats:
    """Return float64[m, k]: as many words of rows as their column `name`; after: words after them."""
    columns = np.full((len(rows), int(rows[name].max(initial=0))), fill)
    start = rows["start"] + rows["width"] - after - rows[name]
    for number in np.unique(rows[name]).tolist():
        of_number = np.flatnonzero(rows[name] == number)
        places = start[of_number, np.newaxis] + np.arange(number)
        columns[of_number[:, np.newaxis], np.arange(number)] = words[places]
    return columns


def episode_of(row: np.void, words: Floats) -> Ints64:
    """Return int64[w]: the words of the episode of a row (ROW), a copy."""
    end = int(row["start"]) + int(row["width"])
    return words[end - int(row["episode"]) : end].view(np.int64).copy()


def compacted(rows: npt.NDArray[np.void], words: Floats) -> tuple[Floats, int]:
    """Return the words of waiting rows without gaps, with room after them, and the number of words in use.

    The offsets in the rows are changed to match.
    """
    holds = np.flatnonzero(~rows["settled"])
    width = rows["width"][holds].astype(np.int64)
    n = int(width.sum())
    start = np.cumsum(width) - width
    places = np.repeat(rows["start"][holds] - start, width) + np.arange(n)
    copied = np.concatenate((words[places], np.zeros(n + GAPS)))
    rows["start"][holds] = start
    return copied, n


def longer(column: npt.NDArray[Any], used: int, more: int) -> npt.NDArray[Any]:
    """Return a column of at least twice the length, with room for `more` elements after the `used` ones."""
    new = np.zeros(max(2 * len(column), used + more), dtype=column.dtype)
    new[:used] = column[:used]
    return new


def sizes_of(rows: npt.NDArray[np.void], holds: Mask) -> Ints64:
    """Return int64[n]: the bytes of entries; holds: bool[n], whether the entry still has its features."""
    sizes: Ints64 = ENTRY_BYTES + rows["text"] + 8 * np.where(holds, rows["width"], 0).astype(np.int64)
    return sizes


def text_of(names: Sequence[Name]) -> Ints64:
    """Return int64[n]: the bytes of names beyond NAME_BYTES."""
    return Names.of(names).bytes_beyond(NAME_BYTES)
