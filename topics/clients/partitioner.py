"""Partitioner: the partition of a key, as Java's clients choose it.

`murmur2` is the hash of Kafka's Java client (`org.apache.kafka.common.utils.Utils.murmur2`: Austin Appleby's
MurmurHash2, 32 bits, seed 0x9747b28c). Java's default partitioner takes `toPositive(murmur2(key))` modulo the
number of partitions. aiokafka does the same; librdkafka calls it `murmur2_random`, but its *default* is CRC32
(`consistent_random`), so two producers of one topic may send a key to different partitions. All producers of
streamgrove set the partition themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF

KEYS_REMEMBERED = 1 << 17


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash of `data` as an unsigned number; Java shows the same bits as a signed one."""
    length = len(data)
    h = _SEED ^ length
    words = length & ~3
    for at in range(0, words, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if length > words:
        h = ((h ^ int.from_bytes(data[words:], "little")) * _M) & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of `key` among `partitions`."""
    return _positive(key) % partitions


def partition_of_new(key: bytes, partitions: int) -> int:
    """Return the result of `partition_of` for a key that is not looked up again; nothing is remembered."""
    return (murmur2(key) & _POSITIVE) % partitions


@lru_cache(maxsize=KEYS_REMEMBERED)
def _positive(key: bytes) -> int:
    """Return Java's `Utils.toPositive(murmur2(key))`: the hash without its sign bit.

    The hash of a key is remembered: the loop costs about 2 µs, a stream repeats its model keys.
    """
    return murmur2(key) & _POSITIVE


def partitions_of(keys: Iterable[bytes], partitions: int) -> npt.NDArray[np.int32]:
    """Return the partition of each of n keys: int32[n]."""
    return np.fromiter((_positive(key) for key in keys), dtype=np.int32) % np.int32(partitions)
