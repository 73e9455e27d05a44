"""Ask: rank records by the doubt about their answers, unless it misleads; the default below 100 %."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries import rate
from core.plugin import count, number


@dataclass(frozen=True, slots=True)
class Plugin(rate.Plugin):
    """The strategy ``rate`` with guards: ``{"name": "ask"}``.

    Uncertainty sampling by the least confidence (Lewis and Gale 1994), ranked within a sliding window (as
    Kottke, Krempl and Spiliopoulou 2015 do) and mixed with random labels. A spec whose budget has a limit
    below 1 and that names no strategy has this one. The parameters are those of ``rate``, but both guards are
    on: where its score would mislead, it requests labels at random (docs/active-learning.md).
    """

    anneal: int = count(200)
    """Labels of a leaf during which this share falls from 1 to ``explore``; 0: it is ``explore`` at once."""
    dependence: float = number(0.3, at_least=0.0, at_most=1.0)
    """Agreement of successive labels beyond chance at which this share is 1; 0: it has no effect."""


PROBLEMS, problem, decide = rate.PROBLEMS, rate.problem, rate.decide
"""State and rule are those of ``rate``."""
