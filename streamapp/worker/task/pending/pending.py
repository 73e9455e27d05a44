"""Pending instances: those with a requested label (or all), as columns in order of arrival.

                 forgotten ──┐      expired ──┐
    serial   …  ░░░░░░░░░░░░ │ ▒▒▒▒▒▒▒▒▒▒▒▒▒▒ │ ██████████████████████ │
                             first           live                     next

An instance waits for `pending.ttl.ms` of event time, counted from the clock when it was answered. Then its
features are dropped and only its id is kept, for as long again, so that a late label is not taken for the
label of an unknown instance. A settled instance (labelled or declined) keeps its id too: its next label is a
duplicate. All data, keys and ids included, stays below `pending.max.bytes`: the oldest entries are forgotten.

All decisions are functions of the sequence of records, never of how it is cut into runs: forgetting by time
may happen late, but every look-up compares an entry with the clock at its record. An entry is identified by
model key and instance id together, because one stream may feed several models.

The model that requested a label is informed how its request was closed (`Closings`). A label that is learned
or declined closes its request at once; every other request is closed at the next *tick*, a sixteenth of the
time to live, by `close_due`: expired in time, forgotten for lack of room (expired as well), answered by a
repeated instance with its label, or never sent because the id was known (declined). Ticks are fixed points of
event time, and a run is cut at them (parts.py), so that it does not matter when a request is found due.

`checkpoint` begins a run and `rollback` undoes it. No row is moved or overwritten in between, so a rollback
needs only the four borders, the settled serials and the names that were struck out, and the times of birth if
the clock was turned back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from core.active.label_account import EXPIRED
from streamapp.worker.task.pending import entries
from streamapp.worker.task.pending.entries import (
    ENTRY_BYTES,
    GAPS,
    ROW,
    Floats,
    Ints32,
    Ints64,
    Kept,
    Mark,
    Mask,
    PendingImage,
)
from streamapp.worker.task.pending.event_time import NO_TIME
from streamapp.worker.task.pending.name_columns import Name, Names
from streamapp.worker.task.pending.name_index import NameIndex

State = Literal["open", "settled", "expired", "unknown"]

Closings = Mapping[tuple[int, int], int]  # (model, ANSWERED | DECLINED | EXPIRED) -> requests

TICKS: Final = 16
"""Ticks in a time to live: how finely the expiry of requests is resolved."""


class Pending:
    """The pending instances of one partition."""

    def __init__(self, ttl_ms: int, max_bytes: int) -> None:
        self.configure(ttl_ms, max_bytes)
        self._rows = np.zeros(64, dtype=ROW)
        self._words = np.zeros(1024, dtype=np.float64)
        self._index = NameIndex()  # of the rows, from physical row 0 on
        self._base = 0  # serial of physical row 0
        self.first = 0  # the oldest serial that is remembered
        self.next_serial = 0  # the serial that the next entry will get
        self._live = 0
        self._closed_to = 0  # the requests of entries before this serial are closed
        self.tick = -1  # number of the last tick
        self._closings: Counter[tuple[int, int]] = Counter()  # reported to the models at the next tick
        self._n_words = 0
        self._text = 0  # bytes of names beyond NAME_BYTES each
        self._turned = 0  # how often the clock was turned back
        self._imaged = False  # an image may hold the array of rows
        self._settled: list[int] = []  # undo: serials settled since the checkpoint
        self._struck: list[int] = []  # undo: serials whose names were taken out of the index
        self._births: list[tuple[int, Ints64]] = []  # undo: first serial, `born` before a clock turned back
        self.bytes = 0
        self.names_changed = 0  # how often a name's entry changed
        self.expired = 0  # instances whose label did not come in time
        self.dropped = 0  # instances forgotten early: no room, or their model was reset or deleted
        self._mark = self._now()

    def configure(self, ttl_ms: int, max_bytes: int) -> None:
        """Change the bounds."""
        self._ttl_ms, self._max_bytes = ttl_ms, max_bytes
        self._tick_ms = max(ttl_ms // TICKS, 1)

    def __len__(self) -> int:
        """Return the number of ids remembered."""
        return len(self._index)

    @property
    def waiting(self) -> int:
        """Return how many instances still wait for their label."""
        rows = self._between(self._live, self.next_serial)
        return int(np.count_nonzero(~rows["settled"]))

    @property
    def outstanding(self) -> int:
        """Return how many requests are open."""
        rows = self._between(max(self._closed_to, self.first), self.next_serial)
        return int(np.count_nonzero(rows["requested"] & ~rows["settled"]))

    # -- looking up -----------------------------------------------------------------------------------------

    def serials(self, names: Sequence[Name]) -> Ints64:
        """Return int64[n]: the serial of each name that is remembered, or expired since; -1: unknown.

        The result is valid until `names_changed` changes.
        """
        return self._index.serials(Names.of(names))

    def find(self, name: Name, clock: int) -> tuple[int, State]:
        """Return the serial (-1: unknown) and the state that the instance has at `clock`."""
        return self.state_of(int(self.serials([name])[0]), clock)

    def state_of(self, serial: int, clock: int) -> tuple[int, State]:
        """Return the same as `find` for the name that leads to a serial (-1: unknown)."""
        if serial < 0:
            return -1, "unknown"
        row = serial - self._base
        age = clock - self._rows["born"].item(row)
        if age > self.memory_ms:
            return -1, "unknown"
        if self._rows["settled"].item(row):
            return serial, "settled"
        return serial, "expired" if age > self._ttl_ms else "open"

    def states_of(self, serials: Ints64, clock: Ints64) -> tuple[Mask, Mask, Mask]:
        """Return which instances are open at their clocks, which are settled, and which are remembered.

        serials, clock: int64[n], -1: unknown; bool[n] each.
        """
        is_open, is_settled = np.zeros((2, len(serials)), dtype=np.bool_)
        is_remembered = serials >= 0
        at_known = np.flatnonzero(is_remembered)
        rows = serials[at_known] - self._base
        age, settled = clock[at_known] - self._rows["born"][rows], self._rows["settled"][rows]
        is_remembered[at_known] = age <= self.memory_ms
        is_open[at_known] = ~settled & (age <= self._ttl_ms)
        is_settled[at_known] = settled & is_remembered[at_known]
        return is_open, is_settled, is_remembered

    def answers(self, serials: Ints64) -> tuple[Ints32, Mask, npt.NDArray[np.int8], Floats]:
        """Return the same as `answered` for many serials: int32[m], bool[m], int8[m], float64[m]."""
        rows = self._rows[serials - self._base]
        is_open = rows["requested"] & (serials >= self._closed_to)
        return rows["prediction"], is_open, rows["sampled"], rows["importance"]

    def answered(self, serial: int) -> tuple[int, bool, int, float]:
        """Return the class answered, whether its request is open, how it was sampled, and its importance."""
        row = serial - self._base
        entry = self._rows[row]
        is_open = entry["requested"].item() and serial >= self._closed_to
        return entry["prediction"].item(), is_open, entry["sampled"].item(), entry["importance"].item()

    def column(self, name: str, serials: Ints64) -> npt.NDArray[Any]:
        """Return a column of the rows (entries.py:ROW) of many: an array of m."""
        return np.asarray(self._rows[name][serials - self._base])

    def features(self, serials: Ints64, n_columns: int) -> Floats:
        """Return float64[m, n_columns]: the features of open entries, NaN in columns they do not have."""
        return entries.features_of(self._rows[serials - self._base], self._words, n_columns)

    def shares(self, serials: Ints64) -> tuple[Floats, Floats]:
        """Return class shares of answers to open entries, zeros: not kept, and reports, NaN: not kept."""
        rows = self._rows[serials - self._base]
        return entries.shares_of(rows, self._words), entries.report_of(rows, self._words)

    def episode(self, serial: int) -> Ints64:
        """Return int64[w]: the words of the episode that an open entry was answered from."""
        return entries.episode_of(self._rows[serial - self._base], self._words)

    @property
    def memory_ms(self) -> int:
        """How long an id is remembered."""
        return 2 * self._ttl_ms

    def has_room(self, n: int) -> bool:
        """Return whether n entries with short names and without features fit without forgetting any."""
        return self.bytes + n * ENTRY_BYTES <= self._max_bytes

    # -- changing -------------------------------------------------------------------------------------------

    def keep(self, kept: Kept, *, settled: bool = False) -> None:
        """Remember instances; their names are unknown, or the names of expired entries.

        `settled`: they have their labels already, and no features to keep.
        """
        kept = kept._replace(names=Names.of(kept.names))
        text = entries.text_of(kept.names)
        sizes = ENTRY_BYTES + text + 8 * kept.width.astype(np.int64)
        at, n = 0, len(kept.names)
        while at < n:
            fit = int(np.searchsorted(np.cumsum(sizes[at:]), self._max_bytes - self.bytes, side="right"))
            part = kept if fit >= n and not at else kept.slice(at, at + fit)
            self._append(part, text[at : at + fit], int(sizes[at : at + fit].sum()), settled)
            at += fit
            if at < n and not self._make_room(int(sizes[at]), int(kept.born[at])):
                self.dropped += 1
                if kept.requested[at]:
                    self.close(int(kept.model[at]), EXPIRED)
                at += 1

    def settle(self, serial: int) -> None:
        """Note that the label of an entry came or was declined; its features may be dropped."""
        row = serial - self._base
        self._rows["settled"][row] = True
        self._settled.append(serial)
        if serial >= self._live:
            self.bytes -= 8 * self._rows["width"].item(row)

    def settle_open(self, serials: Ints64) -> None:
        """Note that the labels of open entries came, as `settle` does for one entry; serials: int64[m]."""
        rows = serials - self._base
        self._rows["settled"][rows] = True
        self._settled += serials.tolist()
        self.bytes -= 8 * int(self._rows["width"][rows[serials >= self._live]].sum())

    def close(self, model: int, how: int) -> None:
        """Note that a request of a model has ended by other means than time; reported at the next tick."""
        self._closings[model, how] += 1

    def tick_of(self, clock: int) -> int:
        """Return the number of the last tick up to `clock`."""
        return clock // self._tick_ms

    def close_due(self, clock: int) -> Closings:
        """Return the requests that have ended up to the last tick, each once; none if no tick has passed."""
        tick = self.tick_of(clock)
        if tick == self.tick:
            return {}
        self.tick = tick
        # Entries that have waited longer than the time to live at the tick: look-ups treat them as expired.
        due = self._first_born_from(tick * self._tick_ms - self._ttl_ms)
        closings = self._closings
        self._closings = Counter()
        rows = self._between(max(self._closed_to, self.first), max(self._closed_to, self.first, due))
        models = rows["model"][rows["requested"] & ~rows["settled"]]
        closings.update((model, EXPIRED) for model in models.tolist())
        self._closed_to = max(self._closed_to, due)
        return closings

    def forget_model(self, model: int) -> None:
        """Forget the entries and requests of a model that was reset or deleted."""
        if self._closings:
            self._closings = Counter({key: n for key, n in self._closings.items() if key[0] != model})
        rows = self._between(self.first, self.next_serial)
        for serial in (np.flatnonzero(rows["model"] == model) + self.first).tolist():
            self.dropped += serial >= self._live and not self._rows["settled"].item(serial - self._base)
            if not self._rows["settled"].item(serial - self._base):
                self.settle(serial)
            self._strike(serial, serial + 1)

    def expire(self, clock: int) -> None:
        """Drop the features of instances that waited too long, and the ids of instances long expired."""
        if self.next_serial == self.first:
            return
        live = self._first_born_from(clock - self._ttl_ms)
        if live > self._live:
            rows = self._between(self._live, live)
            open_width = rows["width"][~rows["settled"]]
            self.expired += len(open_width)
            self.bytes -= 8 * int(open_width.sum())
            self._live = live
        self._forget(self._first_born_from(clock - self.memory_ms))

    def turn(self, clock: int) -> None:
        """Set the times to `clock` for entries kept under a wrong later clock, or before the clock began.

        Entries that expired under that clock stay expired.
        """
        self._turned += 1
        self._own_rows()
        born = self._between(self.first, self.next_serial)["born"]
        self._births.append((self.first, born.copy()))
        np.minimum(np.where(born == NO_TIME, clock, born), clock, out=born)
        gone = born[: max(self._live, self._closed_to) - self.first]
        np.minimum(gone, clock - self._ttl_ms - 1, out=gone)

    # -- one run as a unit ----------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Begin a run: what happened before is final, and memory that is no longer needed is given back."""
        for undo in (self._settled, self._struck, self._births):
            undo.clear()
        self._give_back_rows()
        self._give_back_words()
        self._mark = self._now()

    def rollback(self) -> None:
        """Undo everything since `checkpoint`."""
        mark = self._mark
        struck = np.array([serial for serial in reversed(self._struck) if serial < mark.next], dtype=np.int64)
        self._index.undo(self._between(mark.next, self.next_serial)["older"], struck)
        self._rows["struck"][struck - self._base] = False
        self.names_changed += 1
        for serial in self._settled:
            self._rows["settled"][serial - self._base] = False
        for first, born in reversed(self._births):
            self._between(first, first + len(born))["born"] = born
        for undo in (self._births, self._settled, self._struck):
            undo.clear()
        self.first, self._live, self.next_serial, self._n_words = (
            mark.first,
            mark.live,
            mark.next,
            mark.n_words,
        )
        self._text, self.bytes = mark.text, mark.bytes
        self.expired, self.dropped = mark.expired, mark.dropped
        self._closed_to, self.tick = mark.closed_to, mark.tick
        self._closings = Counter(mark.closings or ())

    # -- contents of a cut ----------------------------------------------------------------------------------

    def image(self) -> PendingImage:
        """Return the current entries, copying only the marks.

        Rows and words are written once and changed or moved only in new arrays, and so are names.
        """
        rows = self._between(self.first, self.next_serial)
        self._imaged = True
        return PendingImage(
            self.first,
            self._live,
            self.next_serial,
            self._closed_to,
            self.tick,
            Counter(self._closings),
            rows,
            rows["settled"].copy(),
            rows["struck"].copy(),
            self._index.stored(self.first, self.next_serial),
            self._words,
            self._turned,
        )

    def image_of_closings(self) -> Closings:
        """Return the requests to report at the next tick, as they are now."""
        return dict(self._closings)

    def load(self, image: PendingImage) -> None:
        """Take in the entries of an image; there are no entries yet."""
        self.first, self._live, self.next_serial = image.first, image.live, image.next
        self._base = image.first
        self._closed_to, self.tick = image.closed_to, image.tick
        self._closings = Counter(image.closings)
        self._rows, self._words, self._n_words = image.rows.copy(), image.words, len(image.words)
        self._rows["settled"], self._rows["struck"] = image.settled, image.struck
        names = image.names.part(0, len(image.rows))
        self._index = NameIndex(self.first)
        self._index.append(names)
        for row in np.flatnonzero(image.struck).tolist():  # unless the name came again later
            self._index.strike(self.first + row, self.first + row + 1)
        self.names_changed += 1
        self._rows["text"] = entries.text_of(names)
        self._text = int(self._rows["text"].sum())
        self.bytes = int(entries.sizes_of(self._rows, image.holds).sum())
        self._mark = self._now()

    # -- inside ---------------------------------------------------------------------------------------------

    def _now(self) -> Mark:
        return Mark(
            self.first,
            self._live,
            self.next_serial,
            self._n_words,
            self._text,
            self.bytes,
            self.expired,
            self.dropped,
            self._closed_to,
            self.tick,
            Counter(self._closings) if self._closings else None,
        )

    def _between(self, start: int, stop: int) -> npt.NDArray[np.void]:
        return self._rows[start - self._base : stop - self._base]

    def _first_born_from(self, limit: int) -> int:
        """Return the first serial born at `limit` or later; births ascend, as the clock never goes back."""
        if self.next_serial == self.first or self._rows["born"].item(self.first - self._base) >= limit:
            return self.first
        born = self._between(self.first, self.next_serial)["born"]
        return self.first + int(np.searchsorted(born, limit))

    def _append(self, kept: Kept, text: Ints64, size: int, settled: bool) -> None:
        m = len(kept.names)
        if m == 0:
            return
        rows = self._room_for_rows(m)
        width = kept.width.astype(np.int64)
        ends = np.cumsum(width)
        kept.fill(rows)
        rows["text"], rows["settled"] = text, settled
        rows["start"] = self._n_words + ends - width
        used = np.arange(kept.x.shape[1]) < width[:, np.newaxis]
        self._room_for_words(int(ends[-1]))[:] = kept.x.ravel() if used.all() else kept.x[used]
        rows["older"] = self._index.append(Names.of(kept.names))
        self.names_changed += 1
        self.next_serial += m
        self._n_words += int(ends[-1])
        self.bytes, self._text = self.bytes + size, self._text + int(text.sum())

    def _make_room(self, size: int, clock: int) -> bool:
        """Forget entries due at `clock`, then the oldest, until an entry fits; return whether it can.

        A sixteenth is freed at once, so that a full store forgets only now and then.
        """
        if size > self._max_bytes:
            return False
        self.expire(clock)
        if self.bytes + size <= self._max_bytes:
            return True
        rows = self._between(self.first, self.next_serial)
        holds = ~rows["settled"]
        holds[: self._live - self.first] = False
        freed = np.cumsum(entries.sizes_of(rows, holds))
        too_much = self.bytes + size - (self._max_bytes - self._max_bytes // 16)
        self._forget(self.first + min(int(np.searchsorted(freed, too_much)) + 1, len(rows)))
        return True

    def _forget(self, first: int) -> None:
        """Forget the entries before `first`."""
        if first <= self.first:
            return
        rows = self._between(self.first, first)
        holds = ~rows["settled"]
        holds[: self._live - self.first] = False
        self.dropped += int(np.count_nonzero(holds))
        is_open = rows["requested"] & ~rows["settled"]
        is_open[: max(self._closed_to - self.first, 0)] = False
        for model in rows["model"][is_open].tolist():
            self.close(model, EXPIRED)
        self.bytes -= int(entries.sizes_of(rows, holds).sum())
        self._text -= int(rows["text"].sum())
        self._strike(self.first, first)
        self.first, self._live = first, max(self._live, first)

    def _strike(self, start: int, stop: int) -> None:
        """Take the entries from `start` to before `stop` out of the index."""
        struck = self._index.strike(start, stop)
        self._between(start, stop)["struck"] |= struck
        self._struck += (np.flatnonzero(struck) + start).tolist()
        self.names_changed += 1

    def _room_for_rows(self, m: int) -> npt.NDArray[np.void]:
        used = self.next_serial - self._base
        if used + m > len(self._rows):
            self._rows = entries.longer(self._rows, used, m)
        return self._rows[used : used + m]

    def _room_for_words(self, m: int) -> Floats:
        if self._n_words + m > len(self._words):
            self._words = entries.longer(self._words, self._n_words, m)
        return self._words[self._n_words : self._n_words + m]

    def _give_back_rows(self) -> None:
        gone = self.first - self._base
        if gone > 64 and 2 * gone > self.next_serial - self._base:
            self._rows = np.concatenate(
                (self._between(self.first, self.next_serial), np.zeros(gone, dtype=ROW))
            )
            self._index.forget(self.first)
            self._base = self.first

    def _give_back_words(self) -> None:
        """Close the gaps that settled and expired entries left in the words.

        This looks at every live entry: so only when the gaps are half of the words, at least `GAPS`, and at
        least one word for each live entry. (Labels that come soon leave many words, and few entries waiting.)
        """
        lives = self.next_serial - self._live
        gaps = self._n_words - self._held_words
        if gaps < max(GAPS, lives, self._n_words // 2):
            return
        self._own_rows()
        rows = self._between(self._live, self.next_serial)
        self._words, self._n_words = entries.compacted(rows, self._words)

    @property
    def _held_words(self) -> int:
        """Return how many words belong to waiting entries: `bytes` minus the fixed cost of each entry."""
        return (self.bytes - ENTRY_BYTES * (self.next_serial - self.first) - self._text) // 8

    def _own_rows(self) -> None:
        """Let an image keep the current array of rows: copy it, once, before a change."""
        if self._imaged:
            self._rows = self._rows.copy()
            self._imaged = False
