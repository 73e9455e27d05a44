"""Batch parts: a refused batch in halves, or without the records that the broker refuses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from topics.fetching.batches import COMPRESSION, HEAD
from topics.fetching.inflate import inflated
from topics.producing.batch_encoder import compressed, sealed
from topics.producing.compression import NONE

MOST_BYTES: Final = (1 << 31) - 1
"""Bytes of inflated records: they are our own."""

_ATTRIBUTES, _LAST_DELTA, _BASE_TIME, _LATEST, _COUNT = 5, 6, 7, 8, 12
"""Places in the head of a batch."""

_LOW: Final = 0x7F
_MORE: Final = 0x80


def halves(wire: bytes, level: int = -1) -> list[tuple[int, bytes]]:
    """Return two batches, which together have the records of one; each with its number of records.

    `level` is `compression.level`.
    """
    n = HEAD.unpack_from(wire)[_COUNT]
    return [
        (len(part), with_records(wire, part, level)) for part in (range(n // 2), range(n // 2, n)) if part
    ]


def without(wire: bytes, refused: Collection[int], level: int = -1) -> list[tuple[int, bytes]]:
    """Return the batch without the records at the `refused` places, with its number of records.

    Nothing if none are left.
    """
    n = HEAD.unpack_from(wire)[_COUNT]
    kept = [place for place in range(n) if place not in refused]
    return [(len(kept), with_records(wire, kept, level))] if kept else []


def with_records(wire: bytes, places: Sequence[int], level: int = -1) -> bytes:
    """Return the batch with the records at these places alone."""
    head = [*HEAD.unpack_from(wire)]
    codec = head[_ATTRIBUTES] & COMPRESSION
    data = wire[HEAD.size :]
    records = _records(data if codec == NONE else inflated(codec, data, MOST_BYTES))
    chosen = [records[place] for place in places]
    head[_ATTRIBUTES] &= ~COMPRESSION
    head[_LAST_DELTA], head[_COUNT] = len(chosen) - 1, len(chosen)
    head[_LATEST] = head[_BASE_TIME] + max(delta for _, _, delta, _ in chosen)
    whole = bytearray(HEAD.pack(*head))
    for place, (attributes, times, _, rest) in enumerate(chosen):
        body = attributes + times + _varint(place) + rest
        whole += _varint(len(body)) + body
    plain = sealed(whole)
    return plain if codec == NONE else compressed(plain, codec, level)


def _records(data: bytes) -> list[tuple[bytes, bytes, int, bytes]]:
    """Return each record in parts: its attributes, its difference in time as bytes and in ms, and the bytes
    that follow its place.
    """
    records, at = [], 0
    while at < len(data):
        size, at = _number(data, at)
        end = at + size
        delta, after_time = _number(data, at + 1)
        _, after_place = _number(data, after_time)
        records.append((data[at : at + 1], data[at + 1 : after_time], delta, data[after_place:end]))
        at = end
    return records


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number (zigzag, seven bits a byte) and its end."""
    number = shift = 0
    while data[at] & _MORE:
        number |= (data[at] & _LOW) << shift
        shift += 7
        at += 1
    number |= data[at] << shift
    return (number >> 1) ^ -(number & 1), at + 1


def _varint(number: int) -> bytes:
    """Return a number of at least 0 as `_number` reads it."""
    rest, out = number << 1, bytearray()
    while rest > _LOW:
        out.append((rest & _LOW) | _MORE)
        rest >>= 7
    out.append(rest)
    return bytes(out)
