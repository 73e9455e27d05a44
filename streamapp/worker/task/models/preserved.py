"""Preserved models: how models were when a run began, for the way back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.plan import Plan


class ModelFacts(NamedTuple):
    """What a model's columns hold beside its schema."""

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
