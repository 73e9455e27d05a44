"""Dead letter record: a record of the topic of dead letters, split into its parts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from streamapp.worker.outputs.dead_letters import (
    ATTEMPTS,
    ERRORS,
    FIRST_SEEN,
    LAST_OFFSET,
    LEFT_OUT,
    REASON,
    ROWS,
)
from topics.columns.records import Headers, RawRecords
from topics.errors import Reason

_OURS: Final = frozenset(
    [
        *(ERRORS + name for name in ("topic", "partition", "offset", "exception", "message", "stacktrace")),
        *(REASON, FIRST_SEEN, ATTEMPTS, ROWS, LAST_OFFSET, LEFT_OUT),
    ]
)


@dataclass(frozen=True, slots=True)
class DeadLetterRecord:
    """A record of the topic of dead letters."""

    partition: int
    offset: int
    timestamp: int  # ms
    key: bytes | None
    value: bytes | None
    headers: Headers  # all of them

    @staticmethod
    def of(raw: RawRecords, at: int) -> DeadLetterRecord:
        here = raw.partition, raw.offsets[at], raw.timestamps[at]
        return DeadLetterRecord(*here, raw.keys[at], raw.values[at], raw.headers[at])

    def header(self, name: str) -> str | None:
        """Return the last header of a name: earlier headers belong to earlier attempts."""
        values = [value for header, value in self.headers if header == name]
        return None if not values or values[-1] is None else values[-1].decode("utf-8", "replace")

    @property
    def reason(self) -> str | None:
        """The reason as a slug; None: the record was not written by a worker."""
        return self.header(REASON)

    @property
    def topic(self) -> str | None:
        return self.header(ERRORS + "topic")

    @property
    def origin(self) -> tuple[int, int] | None:
        """Partition and offset of the record in its original topic."""
        partition, offset = (_number(self.header(ERRORS + name)) for name in ("partition", "offset"))
        return None if partition is None or offset is None else (partition, offset)

    @property
    def last_offset(self) -> int | None:
        """The last offset if a whole batch is dead-lettered; None: it is one record."""
        return _number(self.header(LAST_OFFSET))

    @property
    def detail(self) -> str | None:
        """The problem of the record, in words."""
        return self.header(ERRORS + "message")

    @property
    def first_seen(self) -> int | None:
        """The record's time at its first attempt (ms)."""
        return _number(self.header(FIRST_SEEN))

    @property
    def attempts(self) -> int | None:
        return _number(self.header(ATTEMPTS))

    @property
    def key_text(self) -> str | None:
        return None if self.key is None else self.key.decode("utf-8", "replace")

    @property
    def own_headers(self) -> Headers:
        return [(name, value) for name, value in self.headers if name not in _OURS]

    @property
    def returned_headers(self) -> Headers:
        """Headers of a record that is sent again: its producer's, and the count of attempts."""
        kept = ((name, self.header(name)) for name in (FIRST_SEEN, ATTEMPTS))
        return [*self.own_headers, *((name, value.encode()) for name, value in kept if value is not None)]

    def why_not(self, sources: Collection[str], *, all_the_same: bool) -> str | None:
        """Return why the record cannot be sent to one of the sources again; None: it can.

        `all_the_same`: send it even if a part of it was processed already, or if it was skipped.
        """
        if self.reason is None or self.origin is None:
            return "no worker of ours wrote it"
        if self.topic not in sources:
            return f"its topic {self.topic} is no source of this prefix"
        if (left_out := self.header(LEFT_OUT)) is not None:
            return f"it had no room for {left_out}: the record itself lies at {place_of(self)}"
        if self.last_offset is not None:
            return f"it is a batch, not a record: offsets {self.origin[1]} to {self.last_offset} of its topic"
        if all_the_same:
            return None
        if self.header(ROWS) is not None:
            return "the good rows of its block were processed"
        if self.reason == Reason.OUTPUT_TOO_LARGE:
            return "the record was processed, only an output of it was not sent"
        if self.reason == Reason.SKIPPED:
            return "it stopped its partition, and was skipped for that"
        return None


def place_of(letter: DeadLetterRecord) -> str:
    """Return the original place of the record, in words."""
    return "?" if letter.origin is None else f"{letter.topic} {letter.origin[0]}:{letter.origin[1]}"


def row_of(letter: DeadLetterRecord) -> dict[str, Any]:
    return {
        "at": f"{letter.partition}:{letter.offset}",
        "reason": letter.reason,
        "key": letter.key_text,
        "topic": letter.topic,
        "record": None if letter.origin is None else f"{letter.origin[0]}:{letter.origin[1]}",
        "last_offset": letter.last_offset,
        "timestamp": letter.timestamp,
        "first_seen": letter.first_seen,
        "attempts": letter.attempts,
        "detail": letter.detail,
    }


def document_of(letter: DeadLetterRecord) -> dict[str, Any]:
    """Return all parts of a dead letter; a value and headers that are not text are hexadecimal."""
    return row_of(letter) | {
        "exception": letter.header(ERRORS + "exception"),
        "stacktrace": letter.header(ERRORS + "stacktrace"),
        "rows": letter.header(ROWS),
        "left_out": letter.header(LEFT_OUT),
        "headers": [[name, _readable(value)] for name, value in letter.own_headers],
        "bytes": None if letter.value is None else len(letter.value),
        "value": _readable(letter.value),
    }


def as_text(document: dict[str, Any]) -> str:
    """Return a dead letter's document as lines of text."""
    size = "none" if document["bytes"] is None else f"{document['bytes']:,} bytes"
    named = {
        "reason": document["reason"],
        "detail": document["detail"],
        "exception": document["exception"],
        "record": f"{document['topic']} {document['record']}",
        "up to": document["last_offset"],
        "key": document["key"],
        "first seen": document["first_seen"],
        "attempts": document["attempts"],
        "bad rows": document["rows"],
        "left out": document["left_out"],
    }
    lines = [f"{name:<10} {text}" for name, text in named.items() if text is not None]
    lines += [f"header     {name}: {value}" for name, value in document["headers"]]
    lines.append(f"value      {size}")
    lines += [] if document["value"] is None else [document["value"]]
    return "\n".join([*lines, *(document["stacktrace"] or "").splitlines()])


def _readable(value: bytes | None) -> str | None:
    """Return bytes as text if they are UTF-8, else in hexadecimal."""
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    is_text = all(character.isprintable() or character in "\n\r\t" for character in text)
    return text if is_text else f"0x{value.hex()}"


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else None
