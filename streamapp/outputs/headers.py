"""Headers of outgoing records: `minimal` passes on what is not ours, `full` says what the record is.

Full headers are CloudEvents in binary mode plus `grove-…`. The names of what a codec or a later reader
would take for a statement about the *answer* are not passed on from the question.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from streamapp.outputs.limits import HeaderList
from topics.codecs import CONTENT_TYPES
from topics.records import Format, Headers

_ABOUT_THE_RECORD: Final = ("content-type", "ce_", "grove-", "__streams.errors.")

_OUR_BYTES: Final = 2048  # names, numbers, times, and the name of a topic, of at most 249 bytes

OwnHeaders = tuple[tuple[str, bytes], ...]


def passed_on(headers: Headers) -> HeaderList:
    """Return the headers an answer takes over from its question: trace context, and what we do not know."""
    return [header for header in headers if not header[0].lower().startswith(_ABOUT_THE_RECORD)]


class FullHeaders:
    """Full headers for the records of one application."""

    def __init__(self, application_id: str) -> None:
        self._source = f"/streamgrove/{application_id}".encode()

    def most_bytes(self, record_bytes: int) -> int:
        """Return what the headers of a record add at most; `record_bytes`: of its key, value and others.

        They repeat the key twice, and names that are in the value.
        """
        return _OUR_BYTES + len(self._source) + 2 * record_bytes

    def of(
        self,
        kind: str,
        form: Format,
        events: Iterable[str],
        timestamps: Iterable[int],
        keys: Iterable[bytes | None],
        own: Iterable[OwnHeaders],
        inputs: Iterable[Headers],
    ) -> list[HeaderList]:
        """Return the headers of records of one kind and format.

        `events`: what makes each unique among the records of its kind; `inputs`: the headers of their
        questions.
        """
        fixed = [
            ("content-type", CONTENT_TYPES[form].encode()),
            ("ce_specversion", b"1.0"),
            ("ce_type", f"streamgrove.{kind}".encode()),
            ("ce_source", self._source),
            ("ce_dataschema", f"urn:streamgrove:{kind}:1".encode()),
        ]
        return [
            [
                *fixed,
                ("ce_id", event.encode()),
                ("ce_time", rfc3339(timestamp)),
                *_of_key(key or b""),
                *ours,
                *(passed_on(given) if given else ()),
            ]
            for event, timestamp, key, ours, given in zip(events, timestamps, keys, own, inputs, strict=True)
        ]


@lru_cache(maxsize=4096)
def _of_key(key: bytes) -> OwnHeaders:
    """Return the headers that name a model."""
    return ("ce_subject", key), ("grove-model-key", key)


@lru_cache(maxsize=4096)  # a backlog has many records of one millisecond
def rfc3339(timestamp: int) -> bytes:
    """Return a time in ms since the epoch as CloudEvents writes it.

    >>> rfc3339(1_700_000_000_012)
    b'2023-11-14T22:13:20.012Z'
    """
    return b"%s.%03dZ" % (_second(timestamp // 1000), timestamp % 1000)


@lru_cache(maxsize=1024)
def _second(seconds: int) -> bytes:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()
    except (ValueError, OverflowError):  # a record may claim any time; year 9999 is where this notation ends
        return b"9999-12-31T23:59:59" if seconds > 0 else b"0001-01-01T00:00:00"
