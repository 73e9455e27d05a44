"""Units as chunks: bounded, told apart, and known to be whole."""

import os

import pytest

from streamapp.worker.snapshots.chunks import CHUNK_BYTES, INDEX, UNIT, DamagedError, chunk_keys, pack, unpack

MOST = 4 * CHUNK_BYTES
"""Bytes that a unit may have."""


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 7])
def test_a_unit_comes_back_from_chunks_of_bounded_size(size: int) -> None:
    data = os.urandom(size)
    copy, items = pack(UNIT, b"a", 3, 5, data)
    assert all(0 < len(value) <= CHUNK_BYTES for _, value in items)
    assert copy.size == sum(len(value) for _, value in items)
    assert unpack(UNIT, b"a", copy, dict(items).get, MOST) == data


def test_no_two_units_have_a_key_in_common() -> None:
    data = os.urandom(2 * CHUNK_BYTES)
    seen = [
        key
        for kind, name, incarnation, sequence in [
            (UNIT, b"a", 1, 1),
            (INDEX, b"a", 1, 1),
            (UNIT, b"ab", 1, 1),
            (UNIT, b"a", 2, 1),
            (UNIT, b"a", 1, 2),
        ]
        for key, _ in pack(kind, name, incarnation, sequence, data)[1]
    ]
    assert len(seen) == len(set(seen)) == 15


def test_a_missing_chunk_is_noticed() -> None:
    copy, items = pack(UNIT, b"a", 3, 5, os.urandom(2 * CHUNK_BYTES))
    rest = dict(items)
    del rest[list(chunk_keys(UNIT, b"a", copy))[1]]
    with pytest.raises(DamagedError, match=r"unit a of snapshot 3\.5: 1 of 3 chunks are missing"):
        unpack(UNIT, b"a", copy, rest.get, MOST)


def test_an_altered_chunk_is_noticed() -> None:
    copy, items = pack(UNIT, b"a", 3, 5, b"state")
    ((key, value),) = items
    with pytest.raises(DamagedError, match="do not match their checksum"):
        unpack(UNIT, b"a", copy, {key: value[:-1] + bytes([value[-1] ^ 1])}.get, MOST)
