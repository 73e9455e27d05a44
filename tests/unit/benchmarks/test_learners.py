"""The table of benchmarks.learners: means are over the streams that all learners take."""

from __future__ import annotations

from benchmarks.learners import table_of


def test_a_stream_that_one_learner_refuses_has_no_part_in_the_means() -> None:
    rows = [
        {"learner": "boct", "stream": "sea", "accuracy": 80.0, "us": 100.0, "kb": 10.0},
        {"learner": "arf", "stream": "sea", "accuracy": 90.0, "us": 40.0, "kb": 2000.0},
        {"learner": "arf", "stream": "led", "accuracy": 70.0, "us": 60.0, "kb": 3000.0},
    ]
    lines = table_of(rows).splitlines()
    assert lines[0] == "| learner | accuracy, mean | µs a record | kB | sea | led |"
    assert lines[2] == "| `boct` | 80.0 | 100.00 | 10 | 80.0 | - |"
    assert lines[3] == "| `arf` | 90.0 | 40.00 | 2,000 | 90.0 | 70.0 |"
    assert lines[4] == "Means over sea."
