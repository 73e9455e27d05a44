"""The benchmark of forecasts: the figures of its lines, and the coverage of the bands in small."""

from __future__ import annotations

import json
import math

import pytest

from benchmarks.forecasts import Outcome, figures, main, played
from benchmarks.strategies.runs import ALL_LABELS, learner_of
from benchmarks.strategies.streams import open_stream
from core.learning_curve.forecast import Forecast
from core.measures.estimate import UNKNOWN, Estimate


def outcome(came: float, advice: str = "go on", chance: float = 0.0) -> Outcome:
    band = Estimate(0.8, 0.75, 0.85) if advice != "ask again after drift" else UNKNOWN
    return Outcome(Forecast((), band, band, advice), came, chance, came - 0.8)  # type: ignore[arg-type]


def test_a_line_counts_bands_that_cover_what_came() -> None:
    rest = [outcome(0.9, chance=0.1), outcome(0.79, "stop"), outcome(0.5, "ask again after drift")]
    line = figures([outcome(0.82), *rest])
    assert (line["evaluations"], line["forecasts"]) == (4, 3)
    assert (line["covered"], line["covered_apart"]) == (0.667, 1.0)
    assert line["half"] == 5.0
    assert line["bias"] == pytest.approx(100 * (0.02 + 0.1 - 0.01) / 3, abs=1e-3)
    assert line["advice"] == {"go on": 2, "stop": 1, "ask again after drift": 1}
    assert (line["gain_stop"], line["gain_again"]) == (-1.0, -30.0)


def test_most_bands_cover_what_comes_on_streams_without_drift() -> None:
    outcomes = [
        outcome
        for stream in ("rbf", "waveform")
        for seed in (1, 2)
        for outcome in played(open_stream(stream, seed, 4000), learner_of("h-tree"), ALL_LABELS, 1.0, seed)
    ]
    assert len(outcomes) == 24
    assert all(one.is_forecast and not math.isnan(one.came) for one in outcomes)
    assert sum(one.is_covered(one.chance) for one in outcomes) >= 20


def test_a_stream_makes_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--streams", "sea-drift", "--seeds", "1", "--records", "2500", "--limits", "0.9"]
    assert main([*options, "--strategies", "random"]) == 0
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["stream"], line["strategy"], line["limit"]) == ("sea-drift", "random", 0.9)
    assert line["evaluations"] == sum(line["advice"].values()) == 2


def test_what_cannot_be_run_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--learner", "no-tree"]) == 2
    assert "no-tree" in capsys.readouterr().err
