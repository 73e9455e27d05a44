"""The benchmark of crowds: its annotators, and a small run of all ways."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.crowd import ANNOTATORS, KINDS, WAYS, Crowd, main
from benchmarks.strategies.streams import open_stream


def test_spammers_answer_as_their_kind_does_and_the_others_mostly_right() -> None:
    rows = open_stream("waveform", 1, 4000)
    crowd = Crowd.of(rows, KINDS["mixed"], 1)
    right = (crowd.given == rows.y[:, None]).mean(axis=0)
    assert right[0] == pytest.approx(1 / 3, abs=0.04)
    assert set(crowd.given[:, 1]) == {0}
    assert right[2] == pytest.approx(0.1, abs=0.03)
    assert np.all((right[4:] > 0.6) & (right[4:] < 1.0))
    assert len(crowd.answers(5, 6)) == 6
    assert sorted(crowd.order[0]) == list(range(ANNOTATORS))
    assert np.array_equal(Crowd.of(rows, KINDS["mixed"], 1).given, crowd.given)


def test_a_stream_makes_a_line_for_each_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "--streams", "waveform", "--seeds", "1", "--records", "1200"]) == 0
    lines = {line["way"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert tuple(lines) == WAYS
    assert lines["truth"]["error"] == 0.0 == lines["majority"]["accuracy_gain"]
    assert lines["quality"]["error"] < lines["majority"]["error"] < lines["single"]["error"]
    assert (
        lines["single"]["answers"]
        == 1.0
        < lines["three"]["answers"]
        == 3.0
        < lines["quality"]["answers"]
        <= 6.0
    )


def test_what_cannot_be_run_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--learner", "no-tree"]) == 2
    assert "no-tree" in capsys.readouterr().err
