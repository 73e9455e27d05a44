"""Within the bound, inflating in pieces returns what aiokafka's functions return of the whole; never more."""

import random
from typing import Any

import pytest
from aiokafka import codec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from topics.fetching.inflate import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    DamagedError,
    InflateError,
    OversizedError,
    inflated,
)

ENCODE: dict[int, Any] = {
    GZIP: codec.gzip_encode,
    SNAPPY: codec.snappy_encode,
    LZ4: codec.lz4_encode,
    ZSTD: codec.zstd_encode,
}
DECODE: dict[int, Any] = {
    GZIP: codec.gzip_decode,
    SNAPPY: codec.snappy_decode,
    LZ4: codec.lz4_decode,
    ZSTD: codec.zstd_decode,
}
CODECS = st.sampled_from(list(ENCODE))
DATA = st.builds(lambda part, times: part * times, st.binary(min_size=1, max_size=300), st.integers(0, 2000))


@settings(max_examples=examples(100))
@given(CODECS, DATA, st.booleans(), st.integers(1, 1000))
def test_what_is_within_the_bound_is_inflated_and_a_byte_more_is_not(
    which: int, data: bytes, twice: bool, spare: int
) -> None:
    frame = ENCODE[which](data)
    if twice and which in (GZIP, LZ4, ZSTD):  # frames may follow each other
        frame, data = frame + frame, data + data
    assert inflated(which, frame, len(data)) == inflated(which, frame, len(data) + spare) == data
    if data or which != SNAPPY:  # of which aiokafka takes the head of no blocks for a block
        assert DECODE[which](frame) == data
    if data:
        with pytest.raises(OversizedError):
            inflated(which, frame, len(data) - 1)


@settings(max_examples=examples(200))
@given(CODECS, st.binary(max_size=2000), st.integers(0, 1 << 30), st.booleans())
def test_damaged_bytes_end_as_aiokafka_lets_them_end(which: int, data: bytes, seed: int, cut: bool) -> None:
    draw, frame = random.Random(seed), bytearray(ENCODE[which](data))
    at = draw.randrange(len(frame))
    if cut:
        del frame[at:]
    else:
        frame[at] ^= 1 << draw.randrange(8)
    try:
        theirs = DECODE[which](bytes(frame))
    except Exception:  # noqa: BLE001 - whatever it raises
        with pytest.raises(InflateError):
            inflated(which, bytes(frame), 1 << 20)
    else:
        assert inflated(which, bytes(frame), 1 << 20) == theirs


@given(st.integers(5, 7) | st.just(-1), st.binary(max_size=20))
def test_a_codec_that_kafka_does_not_have_is_named(which: int, data: bytes) -> None:
    with pytest.raises(DamagedError, match=f"codec={which} must be one of 1 .gzip."):
        inflated(which, data, 100)
