"""Span links: from the span of a run to the spans that the `traceparent` headers of its records name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from opentelemetry.trace import Link, SpanContext, TraceFlags, TraceState

from topics.columns.headers import Headers
from topics.columns.records import RawRecords
from topics.columns.spans import HeaderSpans

DESTINATION: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
OFFSET: Final = "messaging.kafka.offset"

_TRACEPARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MEMBER: Final = re.compile(
    r"(?:[a-z][_0-9a-z\-*/]{0,255}|[a-z0-9][_0-9a-z\-*/]{0,240}@[a-z][_0-9a-z\-*/]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
"""A member of `tracestate`. The library logs any other, at the length that its producer chose."""
MOST_MEMBERS: Final = 32
MOST_STATE: Final = 512
"""Bytes of a `tracestate` that is taken; W3C asks for no more."""
MOST_PARENT: Final = 128
"""Bytes of a `traceparent`: those of later versions may be longer than 55. They are kept for labels."""
_LAST_OF_FLAGS: Final = 54
_ODD: Final = frozenset(b"13579bdf")


class TraceHeaders(NamedTuple):
    """The headers of W3C Trace Context of a record that its producer samples."""

    parent: bytes  # traceparent
    state: bytes | None  # tracestate

    @property
    def context(self) -> SpanContext | None:
        """The span that they name; None if they are not well formed.

        >>> TraceHeaders(b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None).context.is_remote
        True
        """
        match = _TRACEPARENT.fullmatch(self.parent)
        if match is None or match[1] == b"ff" or (match[1] == b"00" and match[5]):
            return None
        state = None if self.state is None else _state(self.state.decode("latin-1"))
        flags = TraceFlags(int(match[4], 16))
        context = SpanContext(
            int(match[2], 16), int(match[3], 16), is_remote=True, trace_flags=flags, trace_state=state
        )
        return context if context.is_valid else None


class Sampled(NamedTuple):
    """The records of a run that their producers sample."""

    by_record: dict[int, TraceHeaders]  # by index in RawRecords
    first: list[int]  # the first record of each different list of headers, ascending

    def spread(self, most: int) -> list[int]:
        """Return at most `most` of `first`, evenly spread."""
        n = len(self.first)
        return self.first if n <= most else [self.first[at * n // most] for at in range(most)]


def sampled_of(headers: Sequence[Headers]) -> Sampled:
    """Return the records whose `traceparent` has the flag *sampled*."""
    if not isinstance(headers, HeaderSpans):
        pairs = [(record, trace) for record, own in enumerate(headers) if own and (trace := _sampled(own))]
        return Sampled(dict(pairs), [record for record, _ in pairs])
    if headers.are_none:
        return Sampled({}, [])
    alike = headers.alike
    by_code = {code: trace for code, own in enumerate(alike.distinct) if own and (trace := _sampled(own))}
    if not by_code:
        return Sampled({}, [])
    by_record = {record: by_code[code] for record, code in enumerate(alike.codes.tolist()) if code in by_code}
    codes, first = np.unique(alike.codes, return_index=True)
    return Sampled(by_record, sorted(first[np.isin(codes, list(by_code))].tolist()))


def links_of(raw: RawRecords, sampled: Sampled, records: Iterable[int]) -> list[Link]:
    """Return a link for each of these records whose headers are well formed."""
    contexts = [(record, sampled.by_record[record].context) for record in records]
    return [
        link_to(context, raw.topic, raw.offsets[record])
        for record, context in contexts
        if context is not None
    ]


def link_to(context: SpanContext, topic: str, offset: int) -> Link:
    """Return a link for a record of a topic."""
    return Link(context, {DESTINATION: topic, OFFSET: offset})


def _sampled(headers: Headers) -> TraceHeaders | None:
    """Return the headers of a trace that is sampled, else None; letters of names may have either case."""
    parent = state = None
    for name, value in headers:
        lower = name.lower()
        if lower == "traceparent":
            parent = value
        elif lower == "tracestate":
            state = value
    if (
        parent is None
        or not _LAST_OF_FLAGS < len(parent) <= MOST_PARENT
        or parent[_LAST_OF_FLAGS] not in _ODD
    ):
        return None
    return TraceHeaders(parent, state if state is not None and len(state) <= MOST_STATE else None)


def _state(header: str) -> TraceState | None:
    """Return the content of a `tracestate`; None if it is not well formed, so that it has no effect."""
    members = [member for part in header.split(",") if (member := part.strip(" \t"))]
    if len(members) > MOST_MEMBERS or not all(map(_MEMBER.fullmatch, members)):
        return None
    return TraceState.from_header([header])
