"""The experiment on calibration: its errors are those of the answers."""

import numpy as np
import pytest

from streamapp.lab.experiments.probabilities import calibration
from tests.naive.calibration import expected_error

CELL = {
    "stream": "waveform",
    "address": calibration.STREAMS["waveform"],
    "calibration": "platt",
    "query": "random",
    "delay": 0,
    "records": 20_000,
    "seeds": 1,
}


def test_a_tenth_of_the_labels_halves_the_error_and_sets_hold_nine_tenths():
    result = calibration.run(CELL)
    assert result["error_after"] < 0.5 * result["error_before"]
    assert result["coverage"] == pytest.approx(0.9, abs=0.04)
    assert 1.0 <= result["set_size"] < 2.0


def test_the_error_is_that_of_its_definition():
    claims = np.random.default_rng(1).random(500)
    hits = np.random.default_rng(2).random(500) < claims**2
    assert calibration.expected_error(claims, hits) == pytest.approx(expected_error(claims, hits))
    assert calibration.expected_error(np.ones(3), np.ones(3, bool)) == 0.0


def test_a_report_has_a_line_for_each_stream_and_the_means():
    rows = [
        CELL
        | {"stream": name}
        | dict.fromkeys(calibration.FIGURES, value)
        | {f"{figure}_se": 0.3 * value for figure in calibration.UNCERTAIN}
        for name, value in (("a", 1), ("b", 2))
    ]
    report = calibration.report(rows)
    assert [line["coverage"] for line in report.tables["streams"]] == [1, 2]
    assert [line["coverage"] for line in report.tables["means"]] == [1.5]
    assert report.tables["means"][0]["coverage_se"] == pytest.approx(np.hypot(0.3, 0.6) / 2, abs=1e-5)


def test_the_error_of_one_seed_is_unknown():
    assert calibration.standard_error([0.5]) is None
    assert calibration.standard_error([0.4, 0.6]) == pytest.approx(0.1)
    assert calibration.error_of_mean([0.1, None]) is None
