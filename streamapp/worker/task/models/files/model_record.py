"""Model record: a model and the data of its task about it, of which a unit or a file is made."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.plan import Plan
from streamapp.worker.task.models.challenge import Challenge

Ints64 = npt.NDArray[np.int64]


class ModelRecord(NamedTuple):
    """A model and the task's data about it in addition to its state."""

    key: str
    incarnation: int
    plan: Plan
    ints: Ints64
    known_classes: int
    open: bool
    frozen: bool
    warned: bool
    fresh: bool
    since: int = 0
    challenge: Challenge | None = None
