"""Answers: kernels that write answers into one buffer, with the bytes that the codecs write."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import kernel, row_of, start_of
from topics.codecs.json.probabilities import STEPS, TEXTS
from topics.columns.texts import QUOTE, copied, end_of_string, write_number

STEP_BYTES: Final = 6
"""The longest text of a step is 0.9999."""
FIXED_BYTES: Final = 24
"""Bytes of an answer in the packed layout before its values."""
LONGEST_ID: Final = 2**16 - 1
"""Bytes; the packed layout has 16 bits for them."""
TOO_LONG: Final = -1

_COMMA, _CLOSE, _MINUS = 44, 125, 45
_OPEN_ARRAY, _CLOSE_ARRAY = 91, 93
_BETWEEN_STRINGS: Final = 3  # from the closing quote of one string to the first byte of the next
_NULL_AND_COMMA: Final = 5


def _step_texts() -> Any:
    """Return uint8[STEPS + 1, 8]: each probability as text, its length in the last byte."""
    table = np.zeros((STEPS + 1, 8), dtype=np.uint8)
    for step, text in enumerate(TEXTS):
        table[step, : len(text)] = np.frombuffer(text.encode(), dtype=np.uint8)
        table[step, 7] = len(text)
    return table


STEP_TEXTS: Final = _step_texts()


@kernel(
    "int64(uint8[::1], uint8[::1], int32[::1], float64[:, ::1], int64[::1], uint8[::1], int64[::1], "
    "uint8[:, ::1], uint8[::1], int64[::1])"
)
def write_json(
    ids, paths, prediction, probability, version, texts, text_starts, step_texts, out, starts
) -> int:
    """Write n answers as objects; return the bytes.

    `ids` is a JSON array of n strings, without spaces; `paths` is such an array of the explanations, null for
    a row without one, or empty. `prediction` is int32[n], class codes, -1: none; `probability` is float64[n,
    K]; `version` is int64[n], none negative. `texts` and `text_starts` (int64[2·K + 7]) hold consecutive
    texts: from the id to the probabilities, for each predicted class and for none; the member of each
    class; from the probabilities to the version; the beginning up to the id; the beginning up to the
    explanation; from the explanation to the id; the member of an untrained model, after its version 0.
    `step_texts` is STEP_TEXTS. `out` is uint8 with room for all answers; `starts` is int64[n + 1], the
    start of each answer.
    """
    id_text, path_text, text, begins = start_of(ids), start_of(paths), start_of(texts), start_of(text_starts)
    steps, to, classes = start_of(step_texts), start_of(out), probability.shape[1]
    last = 2 * classes + 1
    id_at, path_at, at = 2, 1, 0
    for row in range(len(starts) - 1):
        starts[row] = at
        if len(paths) and path_text[path_at] == QUOTE:
            end = end_of_string(path_text, path_at + 1) + 1
            at = copied(text, begins[last + 2], begins[last + 3], to, at)
            at = copied(path_text, path_at, end, to, at)
            at = copied(text, begins[last + 3], begins[last + 4], to, at)
            path_at = end + 1
        else:
            at = copied(text, begins[last + 1], begins[last + 2], to, at)
            path_at += _NULL_AND_COMMA
        end = end_of_string(id_text, id_at)
        at = copied(id_text, id_at, end, to, at)
        id_at = end + _BETWEEN_STRINGS
        answer = int(prediction[row])
        if answer < 0:
            answer = classes
        at = copied(text, begins[answer], begins[answer + 1], to, at)
        mine = row_of(probability, row)
        for number in range(classes):
            member = classes + 1 + number
            at = copied(text, begins[member], begins[member + 1], to, at)
            step = 8 * _step(mine[number])
            for i in range(STEP_BYTES):
                to[at + i] = steps[step + i]  # extra bytes after its end are overwritten
            at += int(steps[step + 7])
        at = copied(text, begins[last], begins[last + 1], to, at)
        at = write_number(version[row], to, at)
        if version[row] == 0:
            at = copied(text, begins[last + 4], begins[last + 5], to, at)
        to[at] = _CLOSE
        at += 1
    starts[len(starts) - 1] = at
    return at


@kernel(
    "int64(uint8[::1], uint8[::1], uint8[::1], int32[::1], int64[::1], uint8[:, ::1], uint8[::1], "
    "uint8[::1], int64[::1])"
)
def write_packed(ids, paths, head, prediction, version, values, names, out, starts) -> int:
    """Write n answers in the packed layout; return the bytes, or TOO_LONG if an id is longer than LONGEST_ID.

    `ids` and `paths` are as in `write_json`, but without escapes. `head` is uint8[13]: the first twelve bytes
    of an answer without id and explanation, and the flag of an answer with an explanation. `prediction` is
    int32[n], class codes, -1: none; `version` is int64[n]; `values` is uint8[n, bytes of the values]; `names`
    is uint8, written after each id. `out` is uint8 with room for all answers; `starts` is int64[n + 1], the
    start of each answer.
    """
    id_text, path_text, name_text, to = start_of(ids), start_of(paths), start_of(names), start_of(out)
    id_at, path_at, at, n_names, n_values = 2, 1, 0, len(names), values.shape[1]
    for row in range(len(starts) - 1):
        starts[row] = at
        begin = at
        at = copied(start_of(head), 0, 12, to, at)
        at = _little_endian(prediction[row], 4, to, at)
        at = _little_endian(version[row], 8, to, at)
        at = copied(row_of(values, row), 0, n_values, to, at)
        end = end_of_string(id_text, id_at)
        if end - id_at > LONGEST_ID:
            return TOO_LONG
        _little_endian(end - id_at, 2, to, begin + 6)
        at = copied(id_text, id_at, end, to, at)
        id_at = end + _BETWEEN_STRINGS
        at = copied(name_text, 0, n_names, to, at)
        if len(paths):
            if path_text[path_at] == QUOTE:
                to[begin + 5] = head[12]
                end = end_of_string(path_text, path_at + 1)
                at = copied(path_text, path_at + 1, end, to, at)
                path_at = end + 2
            else:
                path_at += _NULL_AND_COMMA
    starts[len(starts) - 1] = at
    return at


@kernel("int64(int64[::1], int64[::1], uint8[::1])")
def write_record_ids(partitions, offsets, out) -> int:
    """Write ids, each a partition and an offset, as a JSON array; return the bytes. No number is negative."""
    to, at = start_of(out), 0
    for row in range(len(offsets)):
        to[at] = _COMMA
        to[at + 1] = QUOTE
        at = write_number(partitions[row], to, at + 2)
        to[at] = _MINUS
        at = write_number(offsets[row], to, at + 1)
        to[at] = QUOTE
        at += 1
    to[0] = _OPEN_ARRAY
    to[at] = _CLOSE_ARRAY
    return at + 1


@kernel("int64(uint8[::1], int64[::1], uint8[::1])")
def write_offset_ids(head, offsets, out) -> int:
    """Write ids, each a head and an offset, as a JSON array; return the bytes. No offset is negative."""
    to, start = start_of(out), start_of(head)
    at = 0
    for row in range(len(offsets)):
        to[at] = _COMMA
        to[at + 1] = QUOTE
        at = copied(start, 0, len(head), to, at + 2)
        at = write_number(offsets[row], to, at)
        to[at] = QUOTE
        at += 1
    to[0] = _OPEN_ARRAY
    to[at] = _CLOSE_ARRAY
    return at + 1


@kernel
def _step(probability: float) -> int:
    """Return a probability in steps of 0.0001; 0 if it is not a number."""
    steps = np.rint(probability * STEPS)
    if not steps > 0:
        return 0
    return STEPS if steps >= STEPS else int(steps)


@kernel
def _little_endian(number: int, n: int, to, at: int) -> int:
    """Write the n lowest bytes of a number; return their end."""
    for i in range(n):
        to[at + i] = (number >> (8 * i)) & 255
    return at + n
