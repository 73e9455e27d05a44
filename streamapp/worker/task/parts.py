"""Parts of a run: where a run is cut by ticks, and how.

At ticks of event time expired requests are closed in their models, whose budgets may spend them again. A run
is cut at every tick inside it, so that a record sees the same label account for any division into runs. It is
also cut at a record where the clock goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from streamapp.worker.task.challenges.decision_steps import step_of
from streamapp.worker.task.episodes.episode_table import Episodes
from streamapp.worker.task.pending.event_time import RunTime
from streamapp.worker.task.pending.pending import Pending
from topics.codecs.compiled.keys import coded
from topics.columns.records import RawRecords


def ticks(pending: Pending, time: RunTime, *, steps: bool = False) -> list[int]:
    """Return where the parts of a run begin.

    A part begins at 0, at each record that is the first one after a tick, and at each record that turns the
    clock back; steps: also at the first record of each step of event time (challenges/decision_steps.py).
    """
    is_one_step = not steps or step_of(time.first) == step_of(time.last)
    if time.ascends and is_one_step and pending.tick_of(time.first) == pending.tick_of(time.last):
        return [0]
    clocks = time.clocks()
    begins = np.diff(clocks) < 0
    for number_of in (pending.tick_of, step_of) if steps else (pending.tick_of,):
        number = np.array([number_of(clock) for clock in clocks.tolist()])
        begins |= np.diff(number) != 0
    return [0, *(np.flatnonzero(begins) + 1).tolist()]


def where_purchases_change(raw: RawRecords, acquires: Callable[[str], bool]) -> list[int]:
    """Return where parts begin so that the models of a part either all buy features, or none of them does.

    acquires: returns whether the model of a key buys features.
    """
    keys, codes = coded(raw.keys)
    buys = np.array([_acquires(key, acquires) for key in keys], dtype=np.bool_)[codes]
    return (np.flatnonzero(buys[1:] != buys[:-1]) + 1).tolist()


def _acquires(key: bytes | None, acquires: Callable[[str], bool]) -> bool:
    try:
        return bool(key) and acquires((key or b"").decode())
    except UnicodeDecodeError:
        return False


def in_time(
    raw: RawRecords, starts: Sequence[int], clocks: npt.NDArray[np.int64], episodes: Episodes
) -> Iterator[tuple[int, RawRecords]]:
    """Yield the parts of a run as `parts` does, cut at each record that finds an episode overdue.

    clocks: int64[n] at each record. The parts before decide which episodes are open when a part ends.
    """
    for start, stop in zip(starts, [*starts[1:], len(raw)], strict=True):
        at = start
        while at < stop:
            limit = episodes.next_deadline()
            end = stop
            if limit is not None and clocks[stop - 1] > limit:
                end = at + 1 + int(np.argmax(clocks[at + 1 : stop] > limit)) if stop - at > 1 else stop
            yield at, raw.part(at, end)
            at = end


def parts(raw: RawRecords, starts: Sequence[int]) -> Iterator[tuple[int, RawRecords]]:
    """Yield the parts of a run that begin at `starts` (ascending, the first is 0), each with its start."""
    for start, stop in zip(starts, [*starts[1:], len(raw)], strict=True):
        yield start, raw.part(start, stop)
