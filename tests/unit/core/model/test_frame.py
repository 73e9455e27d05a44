"""Frames one after the other are told apart by their heads."""

from __future__ import annotations

import pytest

from core.model.frame import Frame

FRAME = Frame(b"grovetst", 3)
FRAMES = [FRAME.seal(b"{}", ()), FRAME.seal(b'{"a":1}', (b"body", b"more")), FRAME.seal(b"", (bytes(1000),))]


@pytest.mark.parametrize("n", range(len(FRAMES) + 1))
def test_frames_are_split_where_each_begins(n: int) -> None:
    assert FRAME.split(b"".join(FRAMES[:n]), n) == FRAMES[:n]


@pytest.mark.parametrize(
    "data",
    [
        b"".join(FRAMES[:2]),
        b"".join(FRAMES) + b"\0",
        b"".join(FRAMES)[:-1],
        b"".join([*FRAMES, FRAMES[0]]),
        b"".join([FRAMES[0], b"x" * 100, FRAMES[1]]),
        b"".join(FRAMES[:2]) + Frame(b"grovetxx", 3).seal(b"", ()),
        b"".join(FRAMES[:2]) + FRAMES[2][:16] + b"\xff" * 8 + FRAMES[2][24:],
        b"",
    ],
)
def test_other_bytes_are_no_frames(data: bytes) -> None:
    assert FRAME.split(data, 3) is None
