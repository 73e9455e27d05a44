"""No drift detection: the tree grows for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.drift.base import IN_CONTROL, Detector
from core.jit import kernel


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """Never alarms: ``{"name": "none"}``."""


@kernel
def update(knobs: Any, at: int, floats: Any, state: int, error: float) -> int:
    """Report that all is well."""
    return IN_CONTROL
