"""Survey of runs: which runs of a round have models of one family, with nothing new in them (families.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from core.kernels.jit import kernel, row_of, words_at
from streamapp.worker.task.models.families import MIXED, NONE, OPEN, ORDER_BITS, Families, Family
from topics.codecs.compiled.small_runs import JoinedRuns
from topics.columns.records import Ints32, Ints64

UNKNOWN: Final = -4  # kind of a run whose first row was not examined yet


class RunSurvey(NamedTuple):
    """The rows and runs of a round; those of runs without a kind are not valid."""

    family: Family
    code: Ints32  # int32[n] class, -1: no label
    order: Ints64  # int64[n]: number of the class order of each row's model in its kind
    kind: list[int]  # of each run, its index in the family; below 0: OPEN, NONE or MIXED
    labels: list[int]  # of each run: rows with a label


def survey_runs(joined: JoinedRuns, families: Sequence[Families], slots: Ints64) -> RunSurvey | None:
    """Return the rows of a round whose tasks share a register of families; None: no run has a family.

    families: of each run; slots: int64[pairs], below 0: there is no model.
    """
    first = joined.pairs.tolist()

    def slots_of(number: int) -> Ints64:
        return slots[first[number] : first[number + 1]]

    family = None
    for number, own in enumerate(families):
        if slots_of(number).min() >= 0 and (family := own.resolve(slots_of(number))) is not None:
            break
    if family is None:
        return None
    surveyed = _surveyed(joined, families, slots, family)
    if surveyed is None or OPEN not in surveyed.kind:
        return surveyed
    for number, (own, kind) in enumerate(zip(families, surveyed.kind, strict=True)):
        if kind == OPEN and slots_of(number).min() >= 0:
            own.resolve(slots_of(number))
    return _surveyed(joined, families, slots, family)


def _surveyed(
    joined: JoinedRuns, families: Sequence[Families], slots: Ints64, family: Family
) -> RunSurvey | None:
    codes = family.codes(joined.label_values)
    if codes is None:
        return None
    n, n_runs = len(joined), len(families)
    generation = families[0].register.generation  # the tasks share it
    heads = np.array([own.head if own.generation == generation else own.current() for own in families])
    places = np.array((slots, heads.repeat(joined.n_pairs)))
    rows = np.array((joined.pair, joined.label))
    kinds = np.array((family.kind, family.within))
    runs, columns = np.empty((2, n_runs), dtype=np.int64), np.empty((2, n), dtype=np.int64)
    survey_rounds(places, rows, joined.ends, family.number, codes, kinds, runs, columns)
    kind, labels = runs.tolist()
    return RunSurvey(family, columns[0].astype(np.int32), columns[1], kind, labels)


@kernel(
    "void(int64[:, ::1], int32[:, ::1], int64[::1], int64, int32[:, ::1], int64[:, ::1], int64[:, ::1],"
    " int64[:, ::1])"
)
def survey_rounds(places, rows, ends, family, codes, kinds, runs, columns) -> None:
    """Write class and class order of each row, and kind and number of labels of each run.

    places: int64[2, pairs], slot of each pair (below 0: none) and address of its task's members by slot;
    rows: int32[2, n], pair and class name of each row, -1: no label; ends: int64[runs + 1].
    family: number of the family that all models must have; codes: int32[orders, names + 1], class codes;
    kinds: int64[2, orders], kind of each class order and its number there.
    runs: int64[2, runs]; columns: int64[2, n]. The kind of a run is OPEN, NONE or MIXED if it has none.
    """
    unnamed, mask = codes.shape[1] - 1, (1 << ORDER_BITS) - 1
    for run in range(len(ends) - 1):
        kind: Any = np.int64(UNKNOWN)
        labels = 0
        for row in range(ends[run], ends[run + 1]):
            slot, name = places[0, rows[0, row]], rows[1, row]
            if slot < 0:
                kind = NONE
                break
            members, _ = words_at(places[1, rows[0, row]])
            member = members[slot]
            if member < 0 or member >> ORDER_BITS != family:
                kind = member if member < 0 else MIXED
                break
            order = member & mask
            code = row_of(codes, order)[name if name >= 0 else unnamed]
            if (name >= 0 and code < 0) or (kind != UNKNOWN and kind != kinds[0, order]):
                kind = MIXED
                break
            kind = kinds[0, order]
            labels += name >= 0
            columns[0, row], columns[1, row] = code, kinds[1, order]
        runs[0, run], runs[1, run] = kind, labels
