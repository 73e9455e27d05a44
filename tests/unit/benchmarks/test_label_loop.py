"""The label loop counts an answer as learned when a commit is beyond it."""

from __future__ import annotations

import struct

from benchmarks.rig.label_loop import Answer, Loops, committed_place


def test_a_loop_ends_with_the_first_commit_beyond_its_answer() -> None:
    loops = Loops()
    loops.answer("a", Answer(0, 5), 100)
    loops.answer("b", Answer(0, 6), 101)
    loops.answer("c", Answer(1, 5), 102)
    loops.commit(0, 5, 200)
    assert loops.ended == {}
    loops.commit(0, 6, 300)
    assert loops.ended == {"a": 300}
    loops.commit(1, 9, 400)
    loops.commit(1, 12, 450)
    loops.answer("d", Answer(1, 8), 350)  # the report of its delivery came after the commit
    assert loops.ended == {"a": 300, "c": 400, "d": 400}


def test_places_of_commits_and_other_records_of_their_topic() -> None:
    def text(name: str) -> bytes:
        return struct.pack(">h", len(name)) + name.encode()

    key = struct.pack(">h", 1) + text("group") + text("grove.labels") + struct.pack(">i", 7)
    assert committed_place(key) == ("group", "grove.labels", 7)
    assert committed_place(struct.pack(">h", 2) + text("group")) is None
