"""Headers of outgoing records: `minimal` passes on the input's headers, `full` also describes the record.

Full headers are CloudEvents in binary mode plus `grove-…`. Header names that a codec or a later reader would
take for a statement about the *answer* are not passed on from the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from streamapp.worker.outputs.record_sizes import HeaderList
from topics.codecs import CONTENT_TYPES
from topics.codecs.compiled.keys import coded
from topics.codecs.compiled.text_columns import repeated
from topics.columns.distinct import distinct
from topics.columns.header_columns import HeaderColumns
from topics.columns.records import Format, Headers, Ints64
from topics.columns.spans import HeaderSpans, Spans, any_headers

OutputForm = Format | Literal["avro"]
"""A format of outputs; in Avro they are values of the schemas in topics/schemas."""

AVRO: Final = "application/avro"

_ABOUT_THE_RECORD: Final = (
    "content-type",
    "ce_",
    "grove-",
    "__streams.errors.",
    "__value_schema_id",
    "__key_schema_id",
)

_OUR_BYTES: Final = 2048  # names, numbers, times, and the name of a topic, of at most 249 bytes

OwnHeaders = Mapping[str, Spans]
"""Values of headers that only one kind of record has, by name."""


def passed_on(headers: Headers) -> HeaderList:
    """Return the headers an answer takes over from its question: all that do not describe the record."""
    return [header for header in headers if not header[0].lower().startswith(_ABOUT_THE_RECORD)]


class FullHeaders:
    """Full headers for the records of one application."""

    def __init__(self, application_id: str) -> None:
        self._source = f"/streamgrove/{application_id}".encode()

    def most_bytes(self, record_bytes: int) -> int:
        """Return the most bytes that the headers of a record add.

        `record_bytes`: of its key, value and passed-on headers. Full headers repeat the key twice, and names
        that are in the value.
        """
        return _OUR_BYTES + len(self._source) + 2 * record_bytes

    def of(
        self,
        kind: str,
        form: OutputForm,
        events: Spans,
        timestamps: Ints64,
        keys: Spans,
        own: OwnHeaders,
        inputs: Sequence[Headers],
    ) -> HeaderColumns:
        """Return the headers of n records of one kind and format.

        `events`: a name for each record, unique among the records of its kind; timestamps: int64[n];
        `inputs`: the headers of their questions.
        """
        fixed = {
            "content-type": (AVRO if form == "avro" else CONTENT_TYPES[form]).encode(),
            "ce_specversion": b"1.0",
            "ce_type": f"streamgrove.{kind}".encode(),
            "ce_source": self._source,
            "ce_dataschema": f"urn:streamgrove:{kind}:1".encode(),
        }
        always = np.zeros(len(keys), dtype=np.int64)
        models = _named(keys)
        columns = {
            **{name: repeated([value], always) for name, value in fixed.items()},
            "ce_id": events,
            "ce_time": _times(timestamps),
            "ce_subject": models,
            "grove-model-key": models,
            **own,
        }
        ours = HeaderColumns.uniform(list(columns), list(columns.values()))
        return ours if not any_headers(inputs) else ours.followed_by(all_passed_on(inputs))


def all_passed_on(inputs: Sequence[Headers]) -> HeaderColumns:
    """Return for each record the headers that are passed on."""
    if isinstance(inputs, HeaderSpans):
        alike = inputs.alike
        return HeaderColumns.of([passed_on(headers) for headers in alike.distinct]).where(
            alike.codes.astype(np.int64)
        )
    return HeaderColumns.of([passed_on(headers) if headers else () for headers in inputs])


def _named(keys: Spans) -> Spans:
    """Return the model keys, with an empty text for each null key."""
    coded_keys = coded(keys)
    return repeated([key or b"" for key in coded_keys.distinct], coded_keys.codes.astype(np.int64))


def _times(timestamps: Ints64) -> Spans:
    """Return times (int64[n]) as CloudEvents writes them; in a backlog many records share a millisecond."""
    first, number = distinct(timestamps)
    return repeated([rfc3339(time) for time in timestamps[first].tolist()], number)


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
