"""No input detector: the model keeps nothing about its inputs."""

from __future__ import annotations

from dataclasses import dataclass

from core.inputs.base import InputDetector
from core.kernels.jit import kernel


@dataclass(frozen=True, slots=True)
class Plugin(InputDetector):
    """Watches nothing: the default, without a word in the model."""


@kernel
def take(plan, p, state, x, shares, predicted: int) -> int:
    return 0


@kernel
def end_phase(plan, p, state) -> int:
    return 0
