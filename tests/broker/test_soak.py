"""A soak loses nothing, and what would grow in a long night is found by its slopes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.broker

ROOT = Path(__file__).parents[2]


def soak(folder: Path, seconds: int, rate: int, models: int) -> tuple[dict[str, Any], int]:
    """Return the line of JSON and the exit code of a run with one restart of the broker."""
    words = [
        "--seconds",
        str(seconds),
        "--rate",
        str(rate),
        "--models",
        str(models),
        "--broker-restarts",
        "1",
    ]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.soak",
            "--json",
            "--keep",
            str(folder),
            "--broker-restarts",
            "1",
            *words,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout, done.stderr
    line = json.loads(done.stdout)
    assert (line["lost"], line["doubled"], line["worker_exit_code"]) == (0, 0, 0), line
    assert line["dead_letters"] == {}, "controls and instances of a key come in an order that is right"
    assert line["rows"] > 500 and line["labels"] > 0 and line["models_deleted"] > 0
    return line, done.returncode


def test_a_soak_counts_what_was_lost_and_has_a_slope_of_each_figure(tmp_path: Path) -> None:
    line, code = soak(tmp_path, 60, 40, 6)
    for name in ("rss_bytes", "descriptors", "threads", "journal_disk_bytes", "state_disk_bytes"):
        slope = line["slopes"][f"{name}_per_hour"]
        assert slope["low"] <= slope["slope"] <= slope["high"]
    assert (line["grows"], code) == ([], 0)  # a minute is too short to decide anything


@pytest.mark.nightly
@pytest.mark.timeout(5400)
def test_nothing_grows_in_half_an_hour(tmp_path: Path) -> None:
    line, code = soak(tmp_path, 1800, 60, 20)
    assert (line["grows"], code) == ([], 0), line["slopes"]
