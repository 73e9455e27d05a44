"""Slopes of the soak: what grows is found, what only sways is not, and the interval holds its promise."""

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.soak.__main__ import wrong
from benchmarks.soak.samples import process_figures
from benchmarks.soak.slopes import HOUR_S, slope_of
from benchmarks.soak.traffic import DriftingRows

N = 400
TIMES = np.linspace(0.0, HOUR_S, N)


def swaying(rng: np.random.Generator, r: float) -> np.ndarray:
    """Return noise of variance 1 whose neighbours have the correlation r."""
    steps = rng.normal(size=N) * np.sqrt(1 - r * r)
    values = np.empty(N)
    values[0] = rng.normal()
    for at in range(1, N):
        values[at] = r * values[at - 1] + steps[at]
    return values


@pytest.mark.parametrize(("r", "share"), [(0.0, 0.92), (0.9, 0.89), (0.97, 0.85)])
def test_the_interval_has_the_true_slope_about_as_often_as_it_says(r: float, share: float) -> None:
    rng, true = np.random.default_rng(1), 3.0
    hits = 0
    for _ in range(300):
        slope = slope_of(TIMES, 10 + true * TIMES / HOUR_S + swaying(rng, r), 1.0)
        assert slope is not None
        hits += slope.low <= true <= slope.high
    assert hits >= share * 300


def test_verdicts() -> None:
    rng = np.random.default_rng(2)
    noise = swaying(rng, 0.9)
    for growth, scale, verdict in ((0.0, 0.1, "flat"), (50.0, 0.1, "grows"), (0.0, 100.0, "undecided")):
        slope = slope_of(TIMES, 100 + growth * TIMES / HOUR_S + scale * noise, 1.0)
        assert slope is not None and slope.verdict == verdict


@pytest.mark.parametrize("growth", [0.0, 5_000.0])
def test_minutes_decide_nothing(growth: float) -> None:
    """The caches of a worker fill in its first minutes, which is no growth of hours."""
    times = TIMES / 60
    slope = slope_of(times, 100 + growth * times / HOUR_S, 1.0)
    assert slope is not None and slope.verdict == "undecided"
    assert slope.slope == pytest.approx(growth, abs=1e-6)


def test_a_figure_that_never_changes_is_flat() -> None:
    slope = slope_of(TIMES, np.full(N, 7.0), 0.001)
    assert slope is not None
    assert (slope.slope, slope.low, slope.high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)
    assert (slope.mean, slope.verdict) == (7.0, "flat")


@pytest.mark.parametrize("times", [[], [1.0], [1.0, 2.0, 3.0], [5.0] * 9])
def test_too_few_samples_have_no_slope(times: list[float]) -> None:
    assert slope_of(times, [1.0] * len(times), 1.0) is None


def test_the_rows_drift_and_go_on() -> None:
    rows = DriftingRows(50)
    first = [rows.take() for _ in range(50)]
    others = [rows.take() for _ in range(150)]
    again = [rows.take() for _ in range(50)]
    assert first[0][0].keys() == {"attrib1", "attrib2", "attrib3"}
    assert len({str(row) for row in first + others + again}) == 250, "no row comes twice"


def test_tables_of_rocksdb_are_counted_apart_from_other_open_files(tmp_path: Path) -> None:
    before = process_figures(os.getpid())
    files = [(tmp_path / name).open("wb") for name in ("000012.sst", "000013.sst", "LOG")]
    try:
        now = process_figures(os.getpid())
    finally:
        for file in files:
            file.close()
    assert now["table_files"] - before["table_files"] == 2
    assert now["descriptors"] - before["descriptors"] == 1


def test_a_worker_that_ends_with_an_error_is_wrong() -> None:
    right = {"grows": [], "lost": 0, "doubled": 0, "dead_letters": {}, "worker_exit_code": 0}
    assert wrong(right) == []
    assert wrong({**right, "worker_exit_code": 1, "lost": 2}) == ["lost", "worker_exit_code"]
