"""What inflating within bounds leans on in cramjam."""

import cramjam
import numpy as np
import pytest

from topics.fetching import inflate

DATA = bytes(10_000)


@pytest.mark.parametrize("codec", [cramjam.lz4, cramjam.zstd])
def test_room_that_is_too_small_is_told_from_damage_by_the_message(codec: object) -> None:
    compressed = bytes(codec.compress(DATA))  # type: ignore[attr-defined]
    into = codec.decompress_into  # type: ignore[attr-defined]
    room = np.full(len(DATA), 1, dtype=np.uint8)
    assert into(compressed, room) == len(DATA)
    assert room.tobytes() == DATA
    with pytest.raises(cramjam.DecompressionError) as full:
        into(compressed, np.empty(len(DATA) - 1, dtype=np.uint8))
    assert str(full.value) == inflate._FULL
    with pytest.raises(cramjam.DecompressionError) as damaged:
        into(compressed[:-3], np.empty(2 * len(DATA), dtype=np.uint8))
    assert str(damaged.value) != inflate._FULL


def test_a_snappy_block_tells_its_length_and_is_held_to_it() -> None:
    block = bytes(cramjam.snappy.compress_raw(DATA))
    assert cramjam.snappy.decompress_raw_len(block) == len(DATA)
    for lie in (b"\x05", b"\xff\xff\xff\xff\x0f"):
        with pytest.raises(cramjam.DecompressionError):
            cramjam.snappy.decompress_raw(lie + block[2:])


def test_zstd_frames_that_follow_each_other_are_decompressed_together() -> None:
    parts = [bytes([number]) * 1000 for number in range(9)]
    room = bytearray(10_000)
    compressed = b"".join(bytes(cramjam.zstd.compress(part, 1)) for part in parts)
    assert cramjam.zstd.decompress_into(compressed, room) == 9000
    assert room[:9000] == b"".join(parts)
    with pytest.raises(cramjam.DecompressionError):
        cramjam.zstd.decompress_into(compressed, bytearray(8999))
    with pytest.raises(cramjam.DecompressionError):
        cramjam.zstd.decompress_into(compressed[:-3], room)
