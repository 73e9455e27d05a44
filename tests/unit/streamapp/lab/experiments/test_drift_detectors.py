"""The experiment on drift detectors: its alarms are those of its streams, its figures those of its alarms."""

from core.streams.base import open_generator
from streamapp.lab.experiments.drift import drift_detectors

CELL = {
    "stream": "stagger",
    "kind": "abrupt",
    "detector": "hddm_a",
    "budget": 1.0,
    "records": 4000,
    "seeds": 2,
}


def test_a_reversed_concept_is_found_at_once_and_nothing_before_it():
    result = drift_detectors.run(CELL | {"stream": "sine"})
    assert result["early"] == [0, 0]
    assert all(0 <= delay < 100 for delay in result["delays"])


def test_an_abrupt_change_begins_with_the_record_in_the_middle():
    """A model without errors sees the first record of the new concept, which is no false alarm."""
    generator, before, after = drift_detectors.CONCEPTS["stagger"]
    for seed in range(8):
        _, y = next(drift_detectors.stream_of(CELL, seed).batches(4000, 4000))
        _, old = next(open_generator(generator, seed=2 * seed + 1, **before).batches(2000, 2000))
        _, new = next(open_generator(generator, seed=2 * seed + 2, **after).batches(2000, 2000))
        assert y.tolist() == [*old.tolist(), *new.tolist()]


def test_a_tenth_of_the_labels_delays_the_alarm():
    whole, tenth = (drift_detectors.run(CELL | {"budget": budget})["delays"] for budget in (1.0, 0.1))
    assert all(late > early for early, late in zip(whole, tenth, strict=True))


def test_figures_count_misses_and_false_alarms():
    rows = [
        CELL | {"early": [2, 0], "delays": [40, None]},
        CELL | {"kind": "gradual", "early": [0, 2], "delays": [None, 60]},
    ]
    # A gradual change begins a tenth of the stream before its middle.
    assert drift_detectors.figures(rows) == {
        "delay": 50,
        "missed": 0.5,
        "false": 1.0,
        "between": (2 * 2000 + 2 * 1600) // 4,
    }
    assert drift_detectors.figures([CELL | {"early": [0], "delays": [None]}])["delay"] is None
