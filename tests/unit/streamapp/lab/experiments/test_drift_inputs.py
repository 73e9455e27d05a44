"""The experiment on the input detector: its alarms and figures."""

import pytest

from streamapp.lab.experiments.drift import drift_inputs

CELL = {"part": "detection", "kind": "abrupt", "alpha": 0.01, "records": 8000, "seeds": 2}


def test_inputs_that_change_raise_an_alarm_soon_and_others_none():
    moving, calm = ({"stream": stream} | CELL for stream in ("rbf", "sea"))
    found = drift_inputs.detection_of(moving | drift_inputs.run(moving))
    assert (found["false"], found["missed"]) == (0.0, 0.0)
    assert 0 < found["delay"] <= 1000
    assert drift_inputs.detection_of(calm | drift_inputs.run(calm)) == {
        "false": 0.0,
        "delay": None,
        "missed": None,
    }


def test_figures_count_misses_false_alarms_and_gains():
    row = {"stream": "rbf"} | CELL | {"alarms": [[100, 4200], [4300], [], [3000]]}
    assert drift_inputs.detection_of(row) == {"false": 0.5, "delay": 250, "missed": 0.5}
    closed = {"soon": [0.5, 0.6], "late": [0.7, 0.7], "labels": [100, 102]}
    gains = drift_inputs.gain_of({"soon": [0.6, 0.6], "late": [0.7, 0.7], "labels": [100, 100]}, closed)
    assert gains == {"soon": "+5.00 ± 5.00", "late": "+0.00 ± 0.00", "labels": 100, "closed": 101}


@pytest.mark.parametrize("size", ["quick", "medium"])
def test_every_gain_has_its_closed_budget(size):
    cells = drift_inputs.cells(size, None)
    gains = [cell for cell in cells if cell["part"] == "gain"]
    assert {cell["stream"] for cell in gains} == {c["stream"] for c in gains if c["open"] == "closed"}
