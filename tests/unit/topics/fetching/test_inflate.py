"""Bombs of each codec: refused, at the cost of the bound and no more."""

import subprocess
import sys
from typing import Final

import cramjam
import pytest

from topics.fetching.inflate import SNAPPY, ZSTD, DamagedError, OversizedError, inflated

BOUND: Final = 8 << 20
MEASURE: Final = """
import resource, zlib
import cramjam
from topics.fetching.inflate import *
zeros, frames = bytes(1 << 20), {}
gz = zlib.compressobj(wbits=31)
frames[GZIP] = b"".join([*(gz.compress(zeros) for _ in range(200)), gz.flush()])
for codec, made in ((LZ4, cramjam.lz4), (ZSTD, cramjam.zstd)):
    frames[codec] = bytes(made.compress(zeros)) * 200
block = bytes(cramjam.snappy.compress_raw(zeros))
frames[SNAPPY] = b"\\x82SNAPPY\\0\\0\\0\\0\\1\\0\\0\\0\\1" + (len(block).to_bytes(4, "big") + block) * 200
inflated(ZSTD, bytes(cramjam.zstd.compress(b"warm")), 100)
for codec, frame in frames.items():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        inflated(codec, frame, %d)
    except OversizedError:
        print(codec, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_bomb_takes_no_more_memory_than_the_bound_and_some() -> None:
    """Each becomes 200 MB, in frames that follow each other."""
    ended = subprocess.run(
        [sys.executable, "-c", MEASURE % BOUND], check=True, capture_output=True, text=True
    )
    grown = {int(codec): int(kb) for codec, kb in map(str.split, ended.stdout.splitlines())}
    assert set(grown) == {1, 2, 3, 4}
    assert max(grown.values()) < 4 * (BOUND >> 10), grown


def test_a_snappy_block_that_claims_gigabytes_is_refused_before_they_are_taken() -> None:
    block = b"\xff\xff\xff\xff\x0f" + bytes(cramjam.snappy.compress_raw(bytes(100)))[1:]
    with pytest.raises(OversizedError):
        inflated(SNAPPY, block, BOUND)


@pytest.mark.parametrize("claimed", [100, 1 << 40])
def test_a_zstd_frame_that_lies_about_its_size_is_refused(claimed: int) -> None:
    """A head with a content size of eight bytes: of a single segment of 1,000 zeros, run-length encoded."""
    block = (1000 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    true, lie = (
        b"\x28\xb5\x2f\xfd" + bytes([0b1110_0000]) + size.to_bytes(8, "little") + block
        for size in (1000, claimed)
    )
    assert inflated(ZSTD, true, 1000) == bytes(1000)
    with pytest.raises((DamagedError, OversizedError)):
        inflated(ZSTD, lie, BOUND)
