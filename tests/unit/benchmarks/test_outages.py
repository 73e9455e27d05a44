"""Outages: a system that never answers again, and a peer that ends by itself."""

import sys
from pathlib import Path

import pytest

from benchmarks.outages import PEER, LastingPeer, is_silent
from benchmarks.rig.systems import OURS
from tests.broker.workers import wait_until


def test_only_a_silence_of_our_worker_fails_the_run() -> None:
    answers = {"system": OURS, "silent_for_good": 0}
    assert not is_silent([answers, {"system": PEER, "silent_for_good": 1}])
    assert is_silent([answers, {"system": OURS, "silent_for_good": 1}])


def test_a_peer_that_has_ended_is_started_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends at its first start only."""
    here = "import pathlib, sys, time; p = pathlib.Path(sys.argv[1])"
    program = f"{here}; e = p.exists(); p.touch(); print('start'); e and time.sleep(600); sys.exit(1)"
    with LastingPeer([sys.executable, "-c", program, str(tmp_path / "started")], tmp_path) as peer:
        wait_until(peer.start_again, 60, str, every=0.01)
        assert not peer.start_again()
    assert "ended without a command, with exit code 1\nstart" in capsys.readouterr().err
    assert {path.name for path in tmp_path.glob("peer-*")} == {"peer-1.log", "peer-2.log"}
