"""Outages: a system that never answers again."""

from benchmarks.outages import PEER, is_silent
from benchmarks.rig.systems import OURS


def test_only_a_silence_of_our_worker_fails_the_run() -> None:
    answers = {"system": OURS, "silent_for_good": 0}
    assert not is_silent([answers, {"system": PEER, "silent_for_good": 1}])
    assert is_silent([answers, {"system": OURS, "silent_for_good": 1}])
