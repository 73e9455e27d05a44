"""Requests: a kernel that writes label requests into one buffer, with the bytes that the codec writes."""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel, start_of
from topics.columns.texts import QUOTE, copied, end_of_string, write_number

BY_POSITION: Final = -1
"""Marks features without names in `n_names`."""
BEGIN, INSTANCE, FEATURES, EXPIRES, NEVER, NAMES = range(6)
"""Texts of each request; the texts of names, predictions and strategies follow."""

_COMMA, _CLOSE_ARRAY, _CLOSE = 44, 93, 125


@kernel(
    "int64(uint8[::1], uint8[::1], uint8[::1], uint8[::1], int64[::1], int64[::1], int64[::1], int64, int64, "
    "uint8[::1], int64[::1], uint8[::1], int64[::1])"
)
def write_requests(
    request_ids,
    instance_ids,
    cells,
    utility,
    expires,
    prediction,
    strategy,
    n_names,
    first_strategy,
    texts,
    text_starts,
    out,
    starts,
) -> int:
    """Write n requests as objects; return the bytes.

    `request_ids` and `instance_ids` are JSON arrays of n strings; `cells` is an array of n arrays, the
    features of each request; `utility` is an array of n numbers or nulls; all are without spaces. `expires`
    is int64[n], negative: null. `prediction` is int64[n], the text of each prediction after the names;
    `strategy` is int64[n], the text of each strategy after `first_strategy`. `n_names` is the number of
    feature names, or BY_POSITION. `texts` and `text_starts` hold consecutive texts. `out` is uint8 with room
    for all requests; `starts` is int64[n + 1], the start of each request.
    """
    request, instance = start_of(request_ids), start_of(instance_ids)
    cell, number = start_of(cells), start_of(utility)
    text, begins, to = start_of(texts), start_of(text_starts), start_of(out)
    first_prediction = NAMES + max(n_names, 0)
    request_at, instance_at, cell_at, number_at, at = 1, 1, 1, 1, 0
    for row in range(len(starts) - 1):
        starts[row] = at
        at = copied(text, begins[BEGIN], begins[BEGIN + 1], to, at)
        end = end_of_string(request, request_at + 1) + 1
        at = copied(request, request_at, end, to, at)
        request_at = end + 1
        at = copied(text, begins[INSTANCE], begins[INSTANCE + 1], to, at)
        end = end_of_string(instance, instance_at + 1) + 1
        at = copied(instance, instance_at, end, to, at)
        instance_at = end + 1
        at = copied(text, begins[FEATURES], begins[FEATURES + 1], to, at)
        if n_names == BY_POSITION:
            end = _end_of_array(cell, cell_at)
            at = copied(cell, cell_at, end, to, at)
            cell_at = end + 1
        else:
            for name in range(NAMES, NAMES + n_names):
                at = copied(text, begins[name], begins[name + 1], to, at)
                end = _end_of_cell(cell, cell_at + 1)
                at = copied(cell, cell_at + 1, end, to, at)
                cell_at = end
            to[at] = _CLOSE
            at += 1
            cell_at += 2
        of = first_prediction + prediction[row]
        at = copied(text, begins[of], begins[of + 1], to, at)
        of = first_strategy + strategy[row]
        at = copied(text, begins[of], begins[of + 1], to, at)
        end = _end_of_cell(number, number_at)
        at = copied(number, number_at, end, to, at)
        number_at = end + 1
        at = copied(text, begins[EXPIRES], begins[EXPIRES + 1], to, at)
        if expires[row] < 0:
            at = copied(text, begins[NEVER], begins[NEVER + 1], to, at)
        else:
            at = write_number(expires[row], to, at)
        to[at] = _CLOSE
        at += 1
    starts[len(starts) - 1] = at
    return at


@kernel
def _end_of_cell(text, at: int) -> int:
    """Return the end of a string, number or null in an array."""
    if text[at] == QUOTE:
        return int(end_of_string(text, at + 1)) + 1
    while text[at] != _COMMA and text[at] != _CLOSE_ARRAY:
        at += 1
    return at


@kernel
def _end_of_array(text, at: int) -> int:
    """Return the end of an array of cells."""
    at += 1
    while text[at] != _CLOSE_ARRAY:
        at = _end_of_cell(text, at)
        if text[at] == _COMMA:
            at += 1
    return at + 1
