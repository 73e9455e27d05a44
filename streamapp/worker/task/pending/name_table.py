"""Name table: kernels that find the serial of a name by its bytes, in a table with open addressing.

A name is a row of four words: its hash, where its id begins in the bytes of all ids, the length of the id,
and the code of its model key. The table holds serials, and each serial minus `base` is a row of names; a
place without one holds EMPTY. The search for a name begins at the place that its hash determines and ends at
the first empty place. A removal leaves no gap, because later serials move up.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import kernel, start_of
from topics.columns.texts import copied
from topics.columns.words import word

HASH, START, LENGTH, KEY = range(4)
"""Words of a name."""
WORDS: Final = 4
EMPTY: Final = -1

_WORD_BYTES: Final = 8
_FIRST_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_SECOND_FACTOR: Final = np.uint64(0xD6E8FEB86659FD93)
_BEYOND_ASCII: Final = np.uint64(0x8080808080808080)
_HALF, _BYTE, _ONE, _ZERO = np.uint64(32), np.uint64(8), np.uint64(1), np.uint64(0)


@kernel(
    "int64(Array(uint8, 1, 'C', readonly=True), int64[::1], int64[::1], int32[::1], int64[::1], int64[::1])"
)
def hash_names(text, starts, lengths, key, seeds, hashes) -> int:
    """Hash new names, by the bytes of ids and the seeds of keys; return 0 if all ids are ASCII.

    text: uint8, which holds the ids; starts, lengths: int64[n], of each. key: int32[n] into seeds: int64,
    secret, so that producers cannot choose names that collide. hashes: int64[n], not negative.
    """
    bytes_, seen = start_of(text), _ZERO
    for row in range(len(starts)):
        at, end = starts[row], starts[row] + lengths[row]
        hashed = np.uint64(seeds[key[row]]) ^ np.uint64(lengths[row])
        while end - at >= _WORD_BYTES:
            part = word(bytes_, at)
            hashed, seen = _mixed(hashed ^ part), seen | part
            at += _WORD_BYTES
        rest, shift = _ZERO, _ZERO
        while at < end:
            rest |= np.uint64(bytes_[at]) << shift
            shift += _BYTE
            at += 1
        hashes[row] = np.int64(_mixed(_mixed(hashed ^ rest)) >> _ONE)
        seen |= rest
    return 0 if seen & _BEYOND_ASCII == _ZERO else 1


@kernel
def _mixed(number) -> Any:
    number = number * _FIRST_FACTOR
    number = (number ^ (number >> _HALF)) * _SECOND_FACTOR
    return number ^ (number >> _HALF)


@kernel(
    "void(int64[::1], int64[:, ::1], uint8[::1], int64, Array(uint8, 1, 'C', readonly=True), int64[::1], "
    "int64[::1], int64[::1], int32[::1], int64[::1], int64[::1])"
)
def find_names(table, names, ids, base, text, starts, lengths, hashes, key, codes, serials) -> None:
    """Find the serials of new names.

    table: int64[2**k], at least one place empty.
    names: int64[m, WORDS], row 0 has serial base; ids: uint8, in which their ids lie.
    text, starts, lengths, hashes, key: of the new names, as in `hash_names`.
    codes: int64, of each model key that they may have, -1: no name in the table has it.
    serials: int64[n], -1: a name is not there.
    """
    places, rows, own, bytes_ = start_of(table), start_of(names), start_of(ids), start_of(text)
    mask = len(table) - 1
    for i in range(len(starts)):
        code, serial = codes[key[i]], EMPTY
        place = hashes[i] & mask
        while code >= 0 and places[place] >= 0:
            row = WORDS * (places[place] - base)
            if _is(rows, row, hashes[i], lengths[i], code) and _same(
                bytes_, starts[i], own, rows[row + START], lengths[i]
            ):
                serial = places[place]
                break
            place = (place + 1) & mask
        serials[i] = serial


@kernel
def _is(rows, row: int, hash_of_it, length, code) -> bool:
    """Return whether a stored name, which begins at word `row`, may be the name with this hash."""
    return rows[row + HASH] == hash_of_it and rows[row + LENGTH] == length and rows[row + KEY] == code


@kernel
def _same(text, at: int, other, start: int, n: int) -> bool:
    same = 0
    while same < n and text[at + same] == other[start + same]:
        same += 1
    return same == n


@kernel
def _place_of(places, mask: int, rows, own, base: int, row: int) -> int:
    """Return the place of a stored name, or the empty place for it."""
    mine = WORDS * row
    place = rows[mine + HASH] & mask
    while places[place] >= 0:
        other = WORDS * (places[place] - base)
        if _is(rows, other, rows[mine + HASH], rows[mine + LENGTH], rows[mine + KEY]) and _same(
            own, rows[mine + START], own, rows[other + START], rows[mine + LENGTH]
        ):
            return place
        place = (place + 1) & mask
    return place


@kernel("int64(int64[::1], int64[:, ::1], uint8[::1], int64, int64, int64[::1])")
def put_names(table, names, ids, base, first, older) -> int:
    """Make stored names lead to their serials, from `first` on; return how many names were new.

    older: int64[n], gets the earlier serial of each name, -1: none. The table has room for all of them.
    """
    places, rows, own = start_of(table), start_of(names), start_of(ids)
    mask, new = len(table) - 1, 0
    for i in range(len(older)):
        place = _place_of(places, mask, rows, own, base, first - base + i)
        older[i] = places[place]
        new += places[place] == EMPTY
        places[place] = first + i
    return new


@kernel("int64(int64[::1], int64[:, ::1], int64, int64, uint8[::1])")
def strike_names(table, names, base, first, struck) -> int:
    """Remove names that lead to serials from `first` on; return how many there were.

    struck: uint8[n], gets 1 for a removed name, 0 if a name leads elsewhere, or nowhere.
    """
    places, rows = start_of(table), start_of(names)
    mask, n = len(table) - 1, 0
    for i in range(len(struck)):
        serial = first + i
        place = rows[WORDS * (serial - base) + HASH] & mask
        while places[place] != EMPTY and places[place] != serial:
            place = (place + 1) & mask
        struck[i] = places[place] == serial
        if places[place] == serial:
            _close(places, mask, rows, base, place)
            n += 1
    return n


@kernel
def _close(places, mask: int, rows, base: int, gap: int) -> None:
    """Empty a place, and move up later serials that would no longer be found."""
    place = gap
    while True:
        place = (place + 1) & mask
        if places[place] == EMPTY:
            break
        own_place = rows[WORDS * (places[place] - base) + HASH] & mask
        if ((place - own_place) & mask) >= ((place - gap) & mask):
            places[gap] = places[place]
            gap = place
    places[gap] = EMPTY


@kernel("int64(int64[::1], int64[:, ::1], uint8[::1], int64, int64, int64[::1])")
def undo_puts(table, names, ids, base, first, older) -> int:
    """Undo `put_names`, the last name first; return by how many names the table has grown.

    older: int64[n], serials to which the names from `first` on led before, EMPTY: none. The table has room
    for all of them.
    """
    places, rows, own = start_of(table), start_of(names), start_of(ids)
    mask, grown = len(table) - 1, 0
    for i in range(len(older) - 1, -1, -1):
        place = _place_of(places, mask, rows, own, base, first - base + i)
        was = places[place] != EMPTY
        if older[i] != EMPTY:
            places[place] = older[i]
            grown += not was
        elif was:
            _close(places, mask, rows, base, place)
            grown -= 1
    return grown


@kernel("int64(int64[::1], int64[:, ::1], uint8[::1], int64, int64[::1])")
def put_back(table, names, ids, base, serials) -> int:
    """Make removed names lead to these serials again; return how many.

    serials: int64[n], of which the first one of a name counts. The table has room for all of them.
    """
    places, rows, own = start_of(table), start_of(names), start_of(ids)
    mask, n = len(table) - 1, 0
    for i in range(len(serials)):
        place = _place_of(places, mask, rows, own, base, serials[i] - base)
        if places[place] == EMPTY:
            places[place] = serials[i]
            n += 1
    return n


@kernel("void(Array(uint8, 1, 'C', readonly=True), int64[::1], int64[::1], uint8[::1], int64)")
def copy_ids(text, starts, lengths, ids, at) -> None:
    """Copy the ids of new names, contiguously, to a place in the bytes of all ids."""
    bytes_, own = start_of(text), start_of(ids)
    for i in range(len(starts)):
        at = copied(bytes_, starts[i], starts[i] + lengths[i], own, at)


@kernel("void(int64[::1], int64[::1], int64[:, ::1], int64)")
def refill(table, old, names, base) -> None:
    """Put the serials of a table into a new table, which is empty and has room for them."""
    places, rows = start_of(table), start_of(names)
    mask = len(table) - 1
    for i in range(len(old)):
        serial = old[i]
        if serial != EMPTY:
            place = rows[WORDS * (serial - base) + HASH] & mask
            while places[place] != EMPTY:
                place = (place + 1) & mask
            places[place] = serial


@kernel(
    "int64(Array(uint8, 1, 'C', readonly=True), int64[::1], int64[::1], int64[::1], int32[::1], int64[::1], "
    "int64[::1])"
)
def code_names(text, starts, lengths, hashes, key, table, codes) -> int:
    """Give equal new names equal codes, in the order of their first occurrence; return the number of codes.

    text, starts, lengths, hashes, key: as in `hash_names`; table: int64[2**k], more than n, all EMPTY, which
    is overwritten; codes: int64[n].
    """
    bytes_, places = start_of(text), start_of(table)
    mask, n_codes = len(table) - 1, 0
    for i in range(len(starts)):
        place = hashes[i] & mask
        while places[place] != EMPTY:
            other = places[place]
            is_near = hashes[other] == hashes[i] and lengths[other] == lengths[i] and key[other] == key[i]
            if is_near and _same(bytes_, starts[i], bytes_, starts[other], lengths[i]):
                break
            place = (place + 1) & mask
        if places[place] == EMPTY:
            places[place] = i
            codes[i] = n_codes
            n_codes += 1
        else:
            codes[i] = codes[places[place]]
    return n_codes
