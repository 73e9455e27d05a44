"""Pending units: pending instances in blocks that are written once, and the marks of each.

    serial  0 …… 1023 │ 1024 …… 2047 │ 2048 ……… next
            closed block  closed block   tail: written again until it is full
            marks         marks          marks        (settled, struck: they change)

The identity of an entry never changes, so a full block is written once and stays until the last of its
entries is forgotten. Only when the clock was turned back are all blocks laid out and written again. A block
begins where the previous block ends; the entries alone determine the size of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from core.active.disagreement import NOT_DRAWN
from core.layout.challenge_counts import OCTAVES
from streamapp.worker.task.pending.entries import NOT_CHALLENGED, ROW, PendingImage
from streamapp.worker.task.pending.name_columns import Names
from streamapp.worker.task.unit import Unit, UnitName, damaged, seal, unseal
from topics.columns.records import Ints32
from topics.columns.spans import Spans, Texts

PENDING: Final = "pending"
MARKS: Final = "marks"

BLOCK_ENTRIES: Final = 1024
BLOCK_BYTES: Final = 256 << 10
"""The most bytes of a block; a larger entry has a separate block."""

_FIXED_BYTES: Final = 40  # of an entry, in addition to id and features
_COLUMNS: Final = (
    ("born", "<i8"),
    ("width", "<i4"),
    ("prediction", "<i4"),
    ("requested", "u1"),
    ("sampled", "i1"),
    ("importance", "<f8"),
)
_SCALE: Final = ("scale", "<f8")
"""A column that a unit has only if an entry's value is not 1: for models that acquire features."""
_EPISODE: Final = ("episode", "<i4")
"""A column that a unit has only if an entry's value is not 0."""

_SHARES: Final = ("shares", "<i4")
"""Likewise; units of state version 8 and before have no class shares."""

_REPORT: Final = ("report", "<i4")
"""Likewise: for models that calibrate their probabilities or answer sets."""

_CHALLENGED: Final = (("challenger", "<i4"), ("octave", "i1"))
"""Columns that a unit has only if a challenger has answered one of its entries."""


class PendingBlock(NamedTuple):
    """The serials of one block."""

    start: int
    stop: int
    closed: bool

    @property
    def name(self) -> UnitName:
        """Name of the unit with the parts that never change."""
        return UnitName(PENDING, str(self.start))

    @property
    def marks(self) -> UnitName:
        """Name of the unit with the marks, which change."""
        return UnitName(MARKS, str(self.start))


class Marks(NamedTuple):
    """The marks of the instances at a cut, from serial `first` on."""

    first: int = 0
    settled: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
    struck: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)

    @staticmethod
    def of(image: PendingImage) -> Marks:
        """Return the marks of an image."""
        return Marks(image.first, image.settled, image.struck)

    def same(self, other: Marks, block: PendingBlock) -> bool:
        """Return whether a block that is in both has the same marks in both."""
        if block.start < max(self.first, other.first):
            return False
        mine, theirs = (
            slice(block.start - block_marks.first, block.stop - block_marks.first)
            for block_marks in (self, other)
        )
        return bool(
            (self.settled[mine] == other.settled[theirs]).all()
            and (self.struck[mine] == other.struck[theirs]).all()
        )


class Entries(NamedTuple):
    """The entries of a block: m rows."""

    block: PendingBlock
    names: Names
    rows: npt.NDArray[np.void]  # ROW[m]; `start` counts from the block's own words
    words: npt.NDArray[np.float64]
    present: npt.NDArray[np.bool_]  # bool[m]: the features are in the words


def layout(image: PendingImage, written: Sequence[PendingBlock]) -> list[PendingBlock]:
    """Return the blocks of an image's entries: first the closed blocks that were written, then new blocks."""
    kept = [block for block in written if block.closed and block.stop > image.first]
    start = kept[-1].stop if kept else image.first
    sizes = _sizes(image, start)
    ends = np.cumsum(sizes)
    at = 0
    while at < len(sizes):
        before = int(ends[at - 1]) if at else 0
        fit = int(np.searchsorted(ends, before + BLOCK_BYTES, side="right"))
        stop = min(max(fit, at + 1), at + BLOCK_ENTRIES)
        closed = stop < len(sizes) or stop == at + BLOCK_ENTRIES
        kept.append(PendingBlock(start + at, start + stop, closed))
        at = stop
    return kept


def _sizes(image: PendingImage, start: int) -> npt.NDArray[np.int64]:
    """Return int64[n]: the bytes in a block of each entry from serial `start` on."""
    skip = start - image.first
    ids = image.names.lengths[skip:]
    sizes: npt.NDArray[np.int64] = _FIXED_BYTES + ids + 8 * image.rows["width"][skip:].astype(np.int64)
    return sizes


def write_block(image: PendingImage, block: PendingBlock) -> Unit:
    """Return the unit of a block none of whose entries has been forgotten."""
    cut = slice(block.start - image.first, block.stop - image.first)
    rows, present = image.rows[cut], image.holds[cut]
    names = image.names.part(cut.start, cut.stop)
    width = rows["width"][present].astype(np.int64)
    first = np.cumsum(width) - width
    words = image.words[np.repeat(rows["start"][present] - first, width) + np.arange(int(width.sum()))]
    scaled = bool((rows["scale"] != 1.0).any())
    played = bool((rows["episode"] != 0).any())
    shared = bool((rows["shares"] != 0).any())
    reported = bool((rows["report"] != 0).any())
    challenged = bool((rows["challenger"] != NOT_CHALLENGED).any())
    columns_of = _columns_of(scaled, played, shared, reported, challenged)
    columns = [np.ascontiguousarray(rows[name], kind).tobytes() for name, kind in columns_of]
    columns += [
        present.astype("u1").tobytes(),
        names.key.astype("<i4").tobytes(),
        names.lengths.astype("<i4").tobytes(),
        names.spans.buffer,
        words.astype("<f8", copy=False).tobytes(),
    ]
    facts: dict[str, Any] = {
        "entries": len(names),
        "closed": block.closed,
        "keys": [*names.keys],
        "words": len(words),
    }
    if scaled:
        facts["scaled"] = True
    if played:
        facts["episodes"] = True
    if shared:
        facts["shares"] = True
    if reported:
        facts["reports"] = True
    if challenged:
        facts["challenged"] = True
    return seal(block.name, facts, columns)


def _columns_of(
    scaled: bool, played: bool, shared: bool, reported: bool, challenged: bool
) -> tuple[tuple[str, str], ...]:
    """Return the columns of a unit."""
    optional = ((scaled, _SCALE), (played, _EPISODE), (shared, _SHARES), (reported, _REPORT))
    columns = (*_COLUMNS, *(column for is_there, column in optional if is_there))
    return (*columns, *_CHALLENGED) if challenged else columns


def write_marks(image: PendingImage, block: PendingBlock) -> Unit:
    """Return the unit of the marks of a block; marks of forgotten entries are zeros."""
    n, gone = block.stop - block.start, max(image.first - block.start, 0)
    cut = slice(block.start + gone - image.first, block.stop - image.first)
    columns = np.zeros((2, n), dtype=np.bool_)
    columns[0, gone:], columns[1, gone:] = image.settled[cut], image.struck[cut]
    return seal(block.marks, {"entries": n}, [np.packbits(columns, axis=1).tobytes()])


def read_block(unit: Unit) -> Entries:
    """Return the entries of a block's unit; `model`, `settled` and `struck` of the rows are not set."""
    facts, body = unseal(unit)
    n, at = int(facts["entries"]), 0

    def column(kind: str, length: int) -> npt.NDArray[np.generic]:
        nonlocal at
        values = np.frombuffer(body, dtype=kind, count=length, offset=at)
        at += values.nbytes
        return values

    rows = np.zeros(n, dtype=ROW)
    rows["older"], rows["scale"] = -1, 1.0
    rows["challenger"], rows["octave"] = NOT_CHALLENGED, NOT_DRAWN
    try:
        is_there = (name in facts for name in ("scaled", "episodes", "shares", "reports", "challenged"))
        for name, kind in _columns_of(*is_there):
            rows[name] = column(kind, n)
        present = column("u1", n).astype(np.bool_)
        key, length = column("<i4", n).astype(np.int32), column("<i4", n).astype(np.int64)
        starts = np.concatenate(([0], np.cumsum(length)))
        texts = bytes(body[at : at + int(starts[-1])])
        at += len(texts)
        words = column("<f8", int(facts["words"])).astype(np.float64)
        names = _names(facts["keys"], key, Spans.adjacent(texts, starts))
    except (ValueError, IndexError) as error:
        raise damaged(unit.name, f"its columns must fit its {n} entries ({error})") from error
    width = np.where(present, rows["width"], 0).astype(np.int64)
    if at != len(body) or int(width.sum()) != len(words):
        raise damaged(unit.name, "its columns must fit its body and its features")
    beside = rows["episode"].astype(np.int64) + rows["shares"] + rows["report"]
    is_negative = (rows["episode"] < 0) | (rows["shares"] < 0) | (rows["report"] < 0)
    if (is_negative | (beside > rows["width"])).any():
        message = "class shares, report and words of an episode must be among the words of its entry"
        raise damaged(unit.name, message)
    if ((rows["octave"] < NOT_DRAWN) | (rows["octave"] >= OCTAVES)).any():
        raise damaged(unit.name, f"octaves must be from {NOT_DRAWN} to {OCTAVES - 1}")
    rows["start"] = np.cumsum(width) - width
    start = int(unit.name.key)
    return Entries(PendingBlock(start, start + n, bool(facts["closed"])), names, rows, words, present)


def _names(keys: list[str], key: Ints32, ids: Spans) -> Names:
    """Return the names of a unit; ValueError or IndexError if they are damaged."""
    if len(key) and not 0 <= int(key.min()) <= int(key.max()) < len(keys):
        message = f"{len(keys)} model keys"
        raise IndexError(message)
    if (ids.lengths < 0).any():
        message = "an id of less than no bytes"
        raise ValueError(message)
    names = Names(keys, key, Texts(ids))
    if not ids.buffer.isascii():
        list(names.ids)  # raises now if an id is not text
    return names


def read_marks(unit: Unit) -> npt.NDArray[np.bool_]:
    """Return bool[2, m]: settled and struck of the entries of a block."""
    facts, body = unseal(unit)
    n = int(facts["entries"])
    if len(body) != 2 * -(-n // 8):
        raise damaged(unit.name, f"must hold two bits for each of its {n} entries")
    bits = np.frombuffer(body, dtype=np.uint8).reshape(2, -1)
    return np.unpackbits(bits, axis=1, count=n).astype(np.bool_)


def join(
    name: UnitName,
    borders: tuple[int, int, int, int, int],
    closings: dict[tuple[int, int], int],
    blocks: Sequence[tuple[Entries, npt.NDArray[np.bool_]]],
    slot_of: Callable[[str], int],
) -> PendingImage:
    """Return the image of these entries, in order of their serials, each with its marks.

    name: of the unit that holds the borders (first, live, next, closed_to, tick).
    """
    first, live, next_, closed_to, tick = borders
    serial = blocks[0][0].block.start if blocks else next_
    if serial > first or any(block.block.start != stop for block, stop in _with_ends(blocks, serial)):
        raise damaged(name, f"the blocks of pending instances must follow each other from {first} on")
    if (blocks[-1][0].block.stop if blocks else first) != next_:
        raise damaged(name, f"the blocks of pending instances must end at {next_}")
    skip = first - serial
    present = np.concatenate([entries.present for entries, _ in blocks] or [np.zeros(0, dtype=np.bool_)])
    rows = np.concatenate([entries.rows for entries, _ in blocks] or [np.zeros(0, dtype=ROW)])
    words = np.concatenate([entries.words for entries, _ in blocks] or [np.zeros(0)])
    marks = np.concatenate(
        [block_marks for _, block_marks in blocks] or [np.zeros((2, 0), dtype=np.bool_)], axis=1
    )
    n_words = np.cumsum([0, *(len(entries.words) for entries, _ in blocks)])
    for number, (entries, _) in enumerate(blocks):
        at = entries.block.start - serial
        rows["start"][at : at + len(entries.rows)] += n_words[number]
    names = Names.joined([entries.names for entries, _ in blocks])[skip:]
    rows, (settled, struck) = rows[skip:], marks[:, skip:]
    rows["model"] = np.array([slot_of(key) for key in names.keys], dtype=np.int32)[names.key]
    image = PendingImage(
        first,
        live,
        next_,
        closed_to,
        tick,
        closings,
        rows,
        settled.copy(),
        struck.copy(),
        names,
        words,
    )
    if (image.holds & ~present[skip:]).any():
        raise damaged(name, "every pending instance that waits for its label must have its features")
    return image


def _with_ends(
    blocks: Sequence[tuple[Entries, npt.NDArray[np.bool_]]], serial: int
) -> Iterator[tuple[Entries, int]]:
    """Yield each block with the serial at which the previous block ended."""
    for entries, _ in blocks:
        yield entries, serial
        serial = entries.block.stop
