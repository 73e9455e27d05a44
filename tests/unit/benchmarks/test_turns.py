"""Turns: calls are counted by function, in the thread that counts them."""

from __future__ import annotations

import threading

from benchmarks.rig.counted import Calls


def called() -> int:
    return len("ab")


def test_built_in_functions_count_with_the_function_that_calls_them() -> None:
    calls = Calls()
    calls.begin()
    for _ in range(3):
        called()
    calls.end()
    called()
    assert calls.of("called") == 3
    assert calls.by_function()["called benchmarks/test_turns.py"] == 6


def test_calls_of_other_threads_are_not_counted() -> None:
    calls = Calls()
    thread = threading.Thread(target=called)
    calls.begin()
    thread.start()
    thread.join()
    calls.end()
    assert calls.of("called") == 0
