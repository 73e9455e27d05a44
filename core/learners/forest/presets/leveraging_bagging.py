"""Leveraging bagging: trees learn resampled records, and the worst tree is replaced after a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.drift.base import Detector
from core.learners.forest.learner import Forest
from core.plugin import number


@dataclass(frozen=True, slots=True)
class Plugin(Forest):
    """Leveraging bagging: ``{"name": "leveraging-bagging"}`` (Bifet, Holmes and Pfahringer 2010).

    Each member learns a record k times, where k is a Poisson variate of mean ``poisson``, and sees all
    attributes; votes are not weighted. An ADWIN detector watches the errors of each member before it learns.
    An alarm of any detector replaces the member with the largest error in its window, together with its
    detector.

    ``compat="moa"`` applies the rules of MOA 2024.07: detectors see errors after learning.
    """

    replaces_worst: ClassVar[bool] = True
    weights_votes: ClassVar[bool] = False

    drift_confidence: float = number(2e-3, at_least=0.0, below=1.0)
    """ADWIN's confidence for drifts; 0: members are never replaced."""

    @property
    def drift(self) -> Detector:
        return self.detector(self.drift_confidence)
