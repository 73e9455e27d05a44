"""Headers of answers."""

from __future__ import annotations

import pytest

from streamapp.worker.outputs.outgoing_headers import all_passed_on, passed_on, rfc3339
from topics.columns.records import Headers
from topics.columns.spans import RecordSpans


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, b"1970-01-01T00:00:00.000Z"),
        (1_700_000_000_999, b"2023-11-14T22:13:20.999Z"),
        (-1, b"1969-12-31T23:59:59.999Z"),
        (2**62, b"9999-12-31T23:59:59.904Z"),
        (-(2**62), b"0001-01-01T00:00:00.096Z"),
    ],
)
def test_times_are_written_in_utc_whatever_a_record_claims(timestamp: int, text: bytes) -> None:
    assert rfc3339(timestamp) == text


def test_what_speaks_of_the_question_itself_is_not_passed_on() -> None:
    given = [
        ("Content-Type", b"a"),
        ("ce_id", b"b"),
        ("CE_time", b"c"),
        ("grove-instance-id", b"d"),
        ("__streams.errors.topic", b"e"),
        ("traceparent", b"f"),
        ("baggage", b"g"),
        ("céleste", b"h"),
    ]
    assert passed_on(given) == given[-3:]


@pytest.mark.parametrize("rows", [[0, 1, 0, 2, 2, 3, 1], [0, 0], [2], []])
def test_headers_that_are_alike_are_passed_on_as_others_are(rows: list[int]) -> None:
    kinds: list[Headers] = [
        [("content-type", b"a")],
        [("traceparent", b"b"), ("ce_id", b"c"), ("traceparent", None)],
        (),
        [("baggage", b"")],
    ]
    given = [kinds[row] for row in rows]
    numbers = range(len(rows))
    spans = RecordSpans.of(numbers, numbers, [None] * len(rows), [None] * len(rows), given)
    passed = list(all_passed_on(spans.headers))
    assert passed == list(all_passed_on(given)) == [passed_on(each) for each in given]
