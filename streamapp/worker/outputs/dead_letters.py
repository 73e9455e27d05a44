"""Dead letters to send: the untouched record, with the reason in headers (Kafka Streams' names, and ours).

__streams.errors.topic .partition .offset where the record was __streams.errors.exception .message what is
wrong with it __streams.errors.stacktrace only if dead.letter.stacktrace=true grove-dlq-reason the reason as a
slug (docs/records.md lists them) grove-dlq-first-seen its timestamp (ms) when it came first, before it was
sent back grove-dlq-attempts how often it was tried, earlier lives as a dead letter included grove-dlq-rows
bad rows of a block: {"wrong-type": "0-3,7", …} grove-dlq-last-offset of a batch that was put aside whole: its
last offset grove-dlq-left-out parts of the record for which the topic had no room: value, headers, key

A dead letter always fits its topic. A record of a hundred megabytes may have come through the topic of the
instances, compressed: its dead letter holds its topic, partition and offset, without the parts that are too
large.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Final

import numpy as np

from streamapp.worker.outputs.outgoing import OutputRecords
from streamapp.worker.outputs.record_sizes import HeaderList, record_bytes
from streamapp.worker.task.effects.effects import DeadLetter, Origin
from topics.columns.header_columns import HeaderColumns
from topics.columns.headers import UNDECODABLE
from topics.columns.spans import Numbers, Spans
from topics.definitions import ROOM_BYTES
from topics.errors import Reason

ERRORS: Final = "__streams.errors."
REASON: Final = "grove-dlq-reason"
ROWS: Final = "grove-dlq-rows"
FIRST_SEEN: Final = "grove-dlq-first-seen"
ATTEMPTS: Final = "grove-dlq-attempts"
LAST_OFFSET: Final = "grove-dlq-last-offset"
LEFT_OUT: Final = "grove-dlq-left-out"

# Together the limits are below the room that the topic leaves for headers (topics/definitions.py).
MAX_MESSAGE: Final = 2_000
MAX_STACKTRACE: Final = 8_000
MAX_ROWS: Final = 40_000
MAX_EXCEPTION: Final = 500
MAX_DIGITS: Final = 10
MAX_TIME_DIGITS: Final = 16


def dead_letters(topic: str, letters: Sequence[DeadLetter], limit: int) -> OutputRecords:
    """Return dead letters as records of at most `limit` bytes."""
    headers = [dead_letter_headers(letter) for letter in letters]
    origins = [letter.origin for letter in letters]
    for at, origin in enumerate(origins):
        theirs = record_bytes(origin.key, origin.value, origin.headers)
        if theirs + ROOM_BYTES > limit and record_bytes(origin.key, origin.value, headers[at]) > limit:
            origins[at], headers[at] = _shortened(letters[at], headers[at], limit)
    return OutputRecords(
        topic,
        "dead-letter",
        Spans.of([origin.value for origin in origins]),
        Spans.of([origin.key for origin in origins]),
        Numbers(np.array([origin.timestamp for origin in origins], dtype=np.int64)),
        HeaderColumns.of(headers),
        np.array([letter.record for letter in letters], dtype=np.int64),
        limit,
    )


def _shortened(letter: DeadLetter, headers: HeaderList, limit: int) -> tuple[Origin, HeaderList]:
    """Return the parts of a dead letter that fit: drop the value first, then headers, then the key."""
    origin, ours = letter.origin._replace(value=None), headers[len(letter.origin.headers) :]
    steps = (
        ("value", origin, headers),
        ("value, headers", origin._replace(headers=()), ours),
        ("value, headers, key", origin._replace(headers=(), key=None), ours),
    )
    for left_out, rest, given in steps:
        marked = [*given, (LEFT_OUT, left_out.encode())]
        if record_bytes(rest.key, None, marked) <= limit:
            break
    return rest, marked


def dead_letter_headers(letter: DeadLetter) -> HeaderList:
    """Return the headers of a dead letter: the record's headers, then ours."""
    origin = letter.origin
    ours = [
        (f"{ERRORS}topic", origin.topic),
        (f"{ERRORS}partition", str(origin.partition)),
        (f"{ERRORS}offset", str(origin.offset)),
        (f"{ERRORS}exception", letter.exception[:MAX_EXCEPTION]),
        (f"{ERRORS}message", letter.detail[:MAX_MESSAGE]),
        (REASON, letter.reason.value),
        (FIRST_SEEN, str(_first_seen(letter))),
        (ATTEMPTS, str(letter.attempts + _earlier_attempts(letter))),
    ]
    if letter.stacktrace is not None:
        ours.append((f"{ERRORS}stacktrace", letter.stacktrace[-MAX_STACKTRACE:]))
    if letter.last_offset is not None:
        ours.append((LAST_OFFSET, str(letter.last_offset)))
    if letter.rows:
        ours.append((ROWS, rows_text(letter.rows)))
    # Names that are not UTF-8 cannot be sent again: "?" replaces the headers (topics/columns/headers.py).
    theirs = [(name.replace(UNDECODABLE, "?"), value) for name, value in origin.headers]
    # The text of an exception may contain characters that UTF-8 cannot encode.
    return [*theirs, *((name, text.encode(errors="backslashreplace")) for name, text in ours)]


def rows_text(rows: tuple[tuple[int, Reason], ...]) -> str:
    """Return the bad rows by reason, neighbours as ranges; a list too long for a header ends with "…".

    >>> rows_text(((0, Reason.WRONG_TYPE), (1, Reason.WRONG_TYPE), (5, Reason.BAD_WEIGHT)))
    '{"wrong-type": "0-1", "bad-weight": "5"}'
    """
    by_reason: dict[str, list[int]] = {}
    for row, reason in rows:
        by_reason.setdefault(reason.value, []).append(row)
    most = MAX_ROWS // len(by_reason)
    texts = {reason: _ranges(numbers) for reason, numbers in by_reason.items()}
    short = {
        reason: text if len(text) <= most else text[: text.rindex(",", 0, most)] + ",…"
        for reason, text in texts.items()
    }
    return json.dumps(short, ensure_ascii=False)


def _ranges(numbers: list[int]) -> str:
    parts = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        parts.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return ",".join(parts)


def _earlier_attempts(letter: DeadLetter) -> int:
    """Return how often a record that was sent back to its topic had become a dead letter before."""
    return _number(letter, ATTEMPTS, MAX_DIGITS) or 0


def _first_seen(letter: DeadLetter) -> int:
    """Return the timestamp of a record when it first came: a record that is sent back gets a new one.

    No clock is read, so that a record that is processed again leads to the same dead letter.
    """
    earlier = _number(letter, FIRST_SEEN, MAX_TIME_DIGITS)
    return letter.origin.timestamp if earlier is None else earlier


def _number(letter: DeadLetter, header: str, digits: int) -> int | None:
    """Return the number in one of our headers, with which the record came."""
    given = [value for name, value in letter.origin.headers if name == header]
    last = given[-1] if given else None  # any producer may have written it, and it may be null
    return int(last) if last and len(last) < digits and last.isdigit() else None
