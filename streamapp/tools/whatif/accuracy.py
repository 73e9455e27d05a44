"""Accuracy of the answers as they were and as they would be, on the same labels.

Three sets of labels:

    same-labels    all labels that came: exact for their records, no estimate for the rest
    reserve        the labels of records reserved for the evaluation, each as likely as any other
    chances        labels requested with a known probability, weighted by its inverse (Hájek 1971)

The last two estimate the accuracy over all records; where every record has its label, or its label was
requested, all chances are 1. Intervals: Wilson (1927) for an accuracy; for the difference of two accuracies
on the same labels, Wald's with half a label added to each cell of the table of hits (Agresti and Min 2005).
Both count weighted labels as the number of labels with equal weights that is worth as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

from core.numeric.proportions import NORMAL_95, wilson

By = Literal["same-labels", "reserve", "chances"]

PRIOR: Final = 2.0
"""Labels that are added for the interval of a difference: half a one in each of four cells."""


@dataclass(slots=True)
class Tally:
    """Weighted hits on one set of labels."""

    labels: int = 0
    weight: float = 0.0
    squares: float = 0.0
    was: float = 0.0
    would_be: float = 0.0
    gained: float = 0.0  # weight of hits under the spec that were misses
    lost: float = 0.0  # the contrary

    def add(self, was: bool, would_be: bool, weight: float = 1.0) -> None:
        """Count a label: whether the answer was right, and whether it would be."""
        self.labels += 1
        self.weight += weight
        self.squares += weight * weight
        self.was += weight * was
        self.would_be += weight * would_be
        self.gained += weight * (would_be and not was)
        self.lost += weight * (was and not would_be)

    def result(self, by: By, worth: float | None = None) -> dict[str, Any]:
        """Return the comparison; `worth`: of how many labels with equal weights, None: by Kish (1965)."""
        if not self.labels:
            return nothing(by)
        n = self.weight * self.weight / self.squares if worth is None else worth
        was, would_be = self.was / self.weight, self.would_be / self.weight
        return {
            "was": was,
            "would_be": would_be,
            "interval": list(wilson(would_be * n, n)),
            "difference": would_be - was,
            "difference_interval": list(self._of_difference(n)),
            "labels": self.labels,
            "by": by,
        }

    def _of_difference(self, n: float) -> tuple[float, float]:
        """Return the 95 % interval of the difference, from n labels of equal weights."""
        gained, lost = (n * part / self.weight + PRIOR / 4 for part in (self.gained, self.lost))
        total = n + PRIOR
        middle = (gained - lost) / total
        variance = (gained + lost - (gained - lost) ** 2 / total) / (total * total)
        half = NORMAL_95 * math.sqrt(variance)
        here = (self.would_be - self.was) / self.weight
        return min(max(middle - half, -1.0), here), max(min(middle + half, 1.0), here)


def nothing(by: By | None) -> dict[str, Any]:
    """Return the comparison where there are no labels, or (None) none that stand for all records."""
    figures = ("was", "would_be", "interval", "difference", "difference_interval")
    return dict.fromkeys(figures) | {"labels": 0, "by": by}


class Accuracy:
    """Tallies of all sets of labels."""

    def __init__(self) -> None:
        self.same, self.reserve, self.chances = Tally(), Tally(), Tally()
        self.without_label = 0
        """Records that came without a label, and whose label was not requested."""

    def add(self, was: bool, would_be: bool, *, reserved: bool, importance: float) -> None:
        """Count a label that came."""
        self.same.add(was, would_be)
        if reserved:
            self.reserve.add(was, would_be)
        if importance > 0.0:
            self.chances.add(was, would_be, importance)

    def on_same_labels(self) -> dict[str, Any]:
        """Return the comparison on all labels that came."""
        return self.same.result("same-labels")

    def over_all_records(self, *, share: float, worth: float | None) -> dict[str, Any]:
        """Return an estimate for all records, with nothing in it if there is none.

        `share`: of the records that was reserved; `worth`: of the labels with known chances.
        """
        if self.without_label == 0 and self.same.labels:
            return self.same.result("chances")
        if share > 0.0:
            return self.reserve.result("reserve")
        return self.chances.result("chances", worth) if self.chances.labels else nothing(None)
