"""Ask: rank records by the doubt about their answers, after a start at random; the default below 100 %."""

from __future__ import annotations

from dataclasses import dataclass

from core.active.queries import rate
from core.plugin import count


@dataclass(frozen=True, slots=True)
class Plugin(rate.Plugin):
    """The strategy ``rate`` with a random start: ``{"name": "ask"}``.

    Uncertainty sampling by the least confidence (Lewis and Gale 1994), ranked within a sliding window (as
    Kottke, Krempl and Spiliopoulou 2015 do) and mixed with random labels. A spec whose budget has a limit
    below 1 and that names no strategy has this one. The parameters are those of ``rate``; only the default of
    ``anneal`` differs. Until the model has learned some hundred labels, its answers are no guide, and random
    labels teach it more (docs/active-learning.md).
    """

    anneal: int = count(600)
    """Labels during which this share falls from 1 to ``explore``; 0: it is ``explore`` from the start."""


PROBLEMS, problem, decide = rate.PROBLEMS, rate.problem, rate.decide
"""State and rule are those of ``rate``."""
