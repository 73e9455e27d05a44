"""PLASTIC: EFDT that keeps what lies below a test when it replaces the test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.learners.hoeffding.presets import efdt
from core.plugin import count, period


@dataclass(frozen=True, slots=True)
class Plugin(efdt.Plugin):
    """EFDT whose revisions rearrange a subtree instead of removing it: ``{"name": "plastic"}`` (Heyden,
    Gomes, Fouché, Pfahringer and Böhm 2024).

    The new test is pulled up from the ends of the subtree's branches. A leaf that is below the same tests as
    before, in another order, keeps its statistics; a branch that does not have the test is split by it at its
    end, or after ``max_branch_length`` nodes. All else is as in ``efdt``, with a shorter ``revisit_period``.
    """

    revisit_period: float = period(200.0)
    """Labelled weight between two evaluations of an inner node."""
    max_branch_length: int = count(5, at_least=1, at_most=100)
    """Nodes of a branch through which a test is pulled up; 1: subtrees are removed, as in ``efdt``."""

    compats: ClassVar[tuple[str | None, ...]] = (None,)
    restructures: ClassVar[bool] = True
