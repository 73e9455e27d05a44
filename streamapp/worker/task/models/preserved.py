"""Preserved models: copies of models from the beginning of a run, for a rollback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.plan import Plan


class ModelFacts(NamedTuple):
    """A model's entries in the columns of the store."""

    known_classes: int
    open: bool
    frozen: bool
    incarnation: int


@dataclass(frozen=True, slots=True)
class PreservedModel:
    """A model as it was when the run began."""

    key: str
    plan: Plan
    ints: npt.NDArray[np.int64]
    facts: ModelFacts
