"""A dead letter is read back as it was written, and goes back as its producer sent it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamapp.tools.dead_letters.find import DeadLetterFilter
from streamapp.tools.dead_letters.read import DeadLetterRecord, as_text, document_of, place_of
from streamapp.tools.offline.place import Place
from streamapp.worker.outputs.dead_letters import dead_letters
from streamapp.worker.task.effects.effects import DeadLetter, Origin
from topics.columns.records import Headers
from topics.errors import Reason

SOURCES = ("t.instances", "t.labels", "t.controls")


def written(letter: DeadLetter, limit: int = 1 << 20) -> DeadLetterRecord:
    """Return a dead letter as a worker writes it."""
    sent = dead_letters("t.dead-letters", [letter], limit)
    assert sent.headers is not None
    return DeadLetterRecord(3, 17, sent.timestamps[0], sent.keys[0], sent.values[0], sent.headers[0])


def letter(
    value: bytes | None = b"{", *, reason: Reason = Reason.NOT_JSON, headers: Headers = (), **more: object
) -> DeadLetter:
    origin = Origin("t.labels", 3, 1234, 5_000, b"m", value, headers)
    return DeadLetter(origin, reason, "line 1: ü", **more)  # type: ignore[arg-type]


def test_what_it_says_is_what_was_written() -> None:
    letter_read = written(letter(exception="MyError", stacktrace="Traceback\n  line", attempts=2))
    assert (letter_read.reason, letter_read.topic, letter_read.origin) == ("not-json", "t.labels", (3, 1234))
    assert (letter_read.detail, letter_read.first_seen, letter_read.attempts) == ("line 1: ü", 5_000, 2)
    document = document_of(letter_read)
    assert (document["exception"], document["stacktrace"]) == ("MyError", "Traceback\n  line")
    assert place_of(letter_read) == "t.labels 3:1234"
    assert as_text(document).splitlines() == [
        "reason     not-json",
        "detail     line 1: ü",
        "exception  MyError",
        "record     t.labels 3:1234",
        "key        m",
        "first seen 5000",
        "attempts   2",
        "value      1 bytes",
        "{",
        "Traceback",
        "  line",
    ]


def test_it_goes_back_with_the_headers_of_its_producer_and_the_next_one_counts_on() -> None:
    mine: Headers = [("content-type", b"application/json"), ("mine", b"\xff"), ("mine", b"")]
    first = written(letter(headers=mine))
    assert list(first.own_headers) == mine
    back = first.returned_headers
    assert list(back) == [*mine, ("grove-dlq-first-seen", b"5000"), ("grove-dlq-attempts", b"1")]
    second = letter(headers=back)
    again = written(replace(second, origin=second.origin._replace(timestamp=9_000)))
    assert (again.first_seen, again.attempts) == (5_000, 2)
    assert list(again.own_headers) == mine
    assert list(again.returned_headers)[-1] == ("grove-dlq-attempts", b"2")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"a\n\tb", "a\n\tb"),
        ("ü".encode(), "ü"),
        (b"\xff\x00", "0xff00"),
        (b"a\x00", "0x6100"),
        (b"", ""),
        (None, None),
    ],
)
def test_a_value_is_shown_as_text_or_in_hexadecimal(value: bytes | None, shown: str | None) -> None:
    assert document_of(written(letter(value)))["value"] == shown


def test_what_was_processed_in_part_goes_back_only_if_it_is_meant() -> None:
    rows = written(letter(reason=Reason.BAD_ROWS, rows=((0, Reason.WRONG_TYPE),)))
    large = written(letter(reason=Reason.OUTPUT_TOO_LARGE))
    skipped = written(letter(reason=Reason.SKIPPED))
    reasons = ("the good rows of its block", "the record was processed", "it stopped its partition")
    for one_letter, why in zip((rows, large, skipped), reasons, strict=True):
        assert why in (one_letter.why_not(SOURCES, all_the_same=False) or "")
        assert one_letter.why_not(SOURCES, all_the_same=True) is None
    assert written(letter()).why_not(SOURCES, all_the_same=False) is None


def test_what_cannot_go_back_does_not_whatever_is_meant() -> None:
    short = written(letter(bytes(200_000)), limit=100_000)
    assert short.why_not(SOURCES, all_the_same=True) == (
        "it had no room for value: the record itself lies at t.labels 3:1234"
    )
    assert "t.labels is no source" in (written(letter()).why_not(("u.labels",), all_the_same=True) or "")
    foreign = DeadLetterRecord(0, 0, 0, None, b"{", [("grove-dlq-attempts", b"x" * 30)])
    assert foreign.why_not(SOURCES, all_the_same=True) == "no worker of ours wrote it"
    assert (foreign.attempts, place_of(foreign)) == (None, "?")


@pytest.mark.parametrize(
    ("wanted", "has"),
    [
        (DeadLetterFilter(), True),
        (DeadLetterFilter(reasons=("wrong-type", "not-json")), True),
        (DeadLetterFilter(reasons=("wrong-type",)), False),
        (DeadLetterFilter(key="m"), True),
        (DeadLetterFilter(key="n"), False),
        (DeadLetterFilter(place=Place(3, 17)), True),
        (DeadLetterFilter(("not-json",), "m", Place(3, 18)), False),
    ],
)
def test_which_are_wanted(wanted: DeadLetterFilter, has: bool) -> None:
    assert wanted.has(written(letter())) is has
