"""Two accuracies on the same labels: weights, intervals, and what there are no labels for."""

from __future__ import annotations

import numpy as np
import pytest

from streamapp.tools.whatif.accuracy import Accuracy, Tally


def tally(cells: dict[tuple[bool, bool], int], weight: float = 1.0) -> Tally:
    found = Tally()
    for (was, would_be), n in cells.items():
        for _ in range(n):
            found.add(was, would_be, weight)
    return found


CELLS = {(True, True): 60, (True, False): 10, (False, True): 20, (False, False): 10}


def test_the_difference_has_the_interval_of_agresti_and_min() -> None:
    found = tally(CELLS).result("same-labels")
    assert (found["was"], found["would_be"], found["labels"]) == (0.7, 0.8, 100)
    assert found["difference"] == pytest.approx(0.1)
    # Agresti and Min 2005, with half a label in each cell: (c - b) / N ± 1.96 √(b + c - (c - b)²/N) / N
    b, c, n = 10.5, 20.5, 102
    middle, half = (c - b) / n, 1.959964 * np.sqrt(b + c - (c - b) ** 2 / n) / n
    assert found["difference_interval"] == pytest.approx([middle - half, middle + half], abs=1e-6)


def test_equal_weights_change_nothing() -> None:
    one, other = (tally(CELLS, weight).result("chances") for weight in (1.0, 3.0))
    for name in ("was", "would_be", "interval", "difference_interval"):
        assert one[name] == pytest.approx(other[name]), name


def test_models_that_never_differ_have_a_difference_of_0_within_its_interval() -> None:
    low, high = tally({(True, True): 5, (False, False): 5}).result("same-labels")["difference_interval"]
    assert -0.5 < low < 0 < high < 0.5


def test_of_no_labels_nothing_is_said() -> None:
    found = Accuracy().over_all_records(share=0.1, worth=None)
    assert (found["was"], found["by"], found["labels"]) == (None, "reserve", 0)
    assert Accuracy().over_all_records(share=0.0, worth=None)["by"] is None


def test_weighted_labels_estimate_the_accuracy_over_all_records() -> None:
    """Hard records are requested more often; the intervals hold the truth as often as they promise."""
    draw = np.random.default_rng(5)
    n, runs, held, held_difference, plain = 3000, 200, 0, 0, []
    hard = draw.random(n) < 0.3
    chance = np.where(hard, 0.4, 0.05)
    for _ in range(runs):
        was = draw.random(n) < np.where(hard, 0.5, 0.95)
        would_be = np.where(draw.random(n) < 0.7, was, draw.random(n) < np.where(hard, 0.6, 0.95))
        asked = draw.random(n) < chance
        found = Accuracy()
        found.without_label = n - int(asked.sum())
        for row in np.flatnonzero(asked).tolist():
            weight = 1 / float(chance[row])
            found.add(bool(was[row]), bool(would_be[row]), reserved=False, importance=weight)
        result = found.over_all_records(share=0.0, worth=n * n / float((1 / chance).sum()))
        assert result["by"] == "chances"
        low, high = result["interval"]
        held += low <= would_be.mean() <= high
        low, high = result["difference_interval"]
        held_difference += low <= would_be.mean() - was.mean() <= high
        plain.append(found.on_same_labels()["would_be"] - would_be.mean())
    assert held >= 0.9 * runs
    assert held_difference >= 0.9 * runs
    assert np.mean(plain) < -0.1, "a plain share of hits is far off"
