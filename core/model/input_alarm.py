"""Input alarm: the event of a window of inputs that differs from the reference."""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from core.events import MOVED_MAX, InputsChanged, Moved, Watched
from core.inputs.input.distances import UNTESTED, level_of
from core.inputs.input.input import DISTANCES, SHIFT_WORDS, InputParameters, Plugin, begin_again, read_shifts
from core.inputs.input.rows import ANSWER_ROWS
from core.layout.model import Floats
from core.model.model import Model

VALUES_P: Final = 3
MISSING_P: Final = 4
"""Columns of the p-values in a shift; the first columns are the distances in the order of DISTANCES."""
ANSWERS: Final[tuple[Watched, ...]] = ("share", "class")


def alarm(model: Model, row: int, index: int) -> InputsChanged:
    """Return the event of the window that the kernel found changed; let the detector begin again."""
    record, detector = model.plan.record, cast(Plugin, model.spec.inputs)
    state = model.header.input_state(record)
    parameters = InputParameters(record.ints, record.floats, record.inputs_at)
    first = ANSWER_ROWS if parameters.scores else 0
    rows = first + min(int(record.attributes), int(parameters.features))
    shifts = np.zeros((rows, SHIFT_WORDS))
    read_shifts(model.plan.address, model.address, shifts)
    level = float(level_of(parameters, int(state.comparisons)))
    rows_moved = moved_rows(shifts, level, detector)
    sizes = int(parameters.reference), int(parameters.window)
    moved = [_moved(shifts[i].tolist(), i, first, sizes) for i in rows_moved[:MOVED_MAX]]
    begin_again(model.plan.address, model.address)
    return InputsChanged(
        row=row,
        model=index,
        detector=detector.name,
        moved=tuple(moved),
        moved_count=len(rows_moved),
        window=int(parameters.window),
        open_records=int(parameters.open_records),
    )


def moved_rows(shifts: Floats, level: float, detector: Plugin) -> list[int]:
    """Return the rows with a test that Holm's procedure rejects at a level, the smallest p-value first.

    shifts: float64[row, SHIFT_WORDS]. A row whose values moved less than ``least`` needs a change of its
    share of missing values.
    """
    distances = shifts[:, DISTANCES[detector.distance]].tolist()
    p_values = sorted(
        (p_value, row, which)
        for which in (VALUES_P, MISSING_P)
        for row, p_value in enumerate(shifts[:, which].tolist())
        if p_value < UNTESTED
    )
    rejected: dict[int, None] = {}
    for passed, (p_value, row, which) in enumerate(p_values):
        if p_value * (len(p_values) - passed) > level:
            break
        if which == MISSING_P or distances[row] >= detector.least:
            rejected[row] = None
    return list(rejected)


def _moved(shift: list[float], number: int, first: int, sizes: tuple[int, int]) -> Moved:
    """Return how the feature of a row moved.

    shift: SHIFT_WORDS numbers; first: the number of the first attribute's row; sizes: records of the
    reference and of the window.
    """
    ks, psi, hellinger, values_p, missing_p, before, now, unseen = shift
    reference, window = sizes
    return Moved(
        kind=ANSWERS[number] if number < first else "feature",
        attribute=max(number - first, -1),
        ks=ks,
        psi=psi,
        hellinger=hellinger,
        missing=(1.0 - before / reference, 1.0 - now / window),
        unseen=unseen / now if now else 0.0,
        p=min(values_p, missing_p),
    )
