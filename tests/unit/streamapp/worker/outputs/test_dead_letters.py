"""Headers of dead letters: complete, and never larger than the room the topic leaves for them."""

from __future__ import annotations

import json

import pytest

from streamapp.worker.outputs.dead_letters import MAX_ROWS, dead_letter_headers, dead_letters, rows_text
from streamapp.worker.task.effects.effects import DeadLetter, Origin
from topics.definitions import BLOCK_BYTES, ROOM_BYTES, TopicNames
from topics.errors import Reason

ORIGIN = Origin("t.instances", 1, 5, 1000, b"k", b"v", [("mine", b"1")])


def test_neighbouring_rows_are_written_as_ranges_by_reason() -> None:
    rows = (*tuple((row, Reason.WRONG_TYPE) for row in (0, 1, 2, 5, 7, 8)), (3, Reason.BAD_WEIGHT))
    assert json.loads(rows_text(rows)) == {"wrong-type": "0-2,5,7-8", "bad-weight": "3"}


def test_a_list_of_rows_too_long_for_a_header_is_cut_between_two_numbers() -> None:
    rows = tuple((2 * i, list(Reason)[i % 3]) for i in range(100_000))
    text = rows_text(rows)
    assert len(text.encode()) < MAX_ROWS + 200
    for numbers in json.loads(text).values():
        assert numbers.endswith(",…")
        assert all(int(number) % 2 == 0 for number in numbers[:-2].split(","))


def test_the_largest_record_with_the_longest_headers_still_fits_the_topic() -> None:
    letter = DeadLetter(
        ORIGIN,
        Reason.BAD_ROWS,
        "é" * 10**6,
        rows=tuple((2 * i, Reason.UNKNOWN_CONTENT_TYPE) for i in range(10**5)),
        stacktrace="x" * 10**6,
    )
    size = sum(len(name) + len(value or b"") for name, value in dead_letter_headers(letter))
    assert TopicNames.dead_letters.max_message_bytes is not None
    assert size + 1024 < TopicNames.dead_letters.max_message_bytes - BLOCK_BYTES


def test_attempts_of_earlier_lives_count() -> None:
    headers = [("grove-dlq-attempts", b"2"), ("grove-dlq-attempts", b"3")]
    letter = DeadLetter(ORIGIN._replace(headers=headers), Reason.NOT_JSON, "x")
    assert dead_letter_headers(letter)[-1] == ("grove-dlq-attempts", b"4")
    strange = DeadLetter(ORIGIN._replace(headers=[("grove-dlq-attempts", b"many")]), Reason.NOT_JSON, "x")
    assert dead_letter_headers(strange)[-1] == ("grove-dlq-attempts", b"1")


@pytest.mark.parametrize("value", [None, b"9" * 5000])
def test_attempts_that_are_no_number_of_ours_do_not_count(value: bytes | None) -> None:
    headers = [("grove-dlq-attempts", value)]
    letter = DeadLetter(ORIGIN._replace(headers=headers), Reason.NOT_JSON, "x")
    assert dead_letter_headers(letter)[-1] == ("grove-dlq-attempts", b"1")


def test_a_record_that_is_sent_back_says_when_it_came_first() -> None:
    first = dict(dead_letter_headers(DeadLetter(ORIGIN, Reason.NOT_JSON, "x")))
    assert first["grove-dlq-first-seen"] == str(ORIGIN.timestamp).encode()
    again = ORIGIN._replace(timestamp=ORIGIN.timestamp + 60_000, headers=list(first.items()))
    second = dead_letter_headers(DeadLetter(again, Reason.NOT_JSON, "x"))
    assert dict(second)["grove-dlq-first-seen"] == first["grove-dlq-first-seen"]
    assert dict(second)["grove-dlq-attempts"] == b"2"
    for strange in (None, b"", b"-5", b"yesterday", b"9" * 5000):
        letter = DeadLetter(again._replace(headers=[("grove-dlq-first-seen", strange)]), Reason.NOT_JSON, "x")
        assert dict(dead_letter_headers(letter))["grove-dlq-first-seen"] == str(again.timestamp).encode()


def test_a_header_name_that_was_not_utf8_is_sent_on_with_question_marks() -> None:
    headers = [("é\N{REPLACEMENT CHARACTER}b", b"\xff")]
    letter = DeadLetter(ORIGIN._replace(headers=headers), Reason.BAD_HEADER, "x")
    assert dead_letter_headers(letter)[0] == ("é?b", b"\xff")


HUGE = 300_000


@pytest.mark.parametrize(
    ("origin", "left_out"),
    [
        (ORIGIN, None),
        (ORIGIN._replace(value=bytes(HUGE)), "value"),
        (ORIGIN._replace(headers=[("mine", bytes(HUGE))]), "value, headers"),
        (ORIGIN._replace(headers=[(f"mine-{i}", b"1") for i in range(HUGE // 10)]), "value, headers"),
        (ORIGIN._replace(headers=[("ü" * HUGE, b"")]), "value, headers"),
        (ORIGIN._replace(headers=[("none", None)] * (HUGE // 10)), "value, headers"),
        (ORIGIN._replace(key=bytes(HUGE)), "value, headers, key"),
    ],
)
def test_a_dead_letter_always_fits_its_topic(origin: Origin, left_out: str | None) -> None:
    worst = {"detail": "\N{GRINNING FACE}" * 10**6, "exception": "e" * 10**6}
    rows = tuple((2 * i, Reason.UNKNOWN_CONTENT_TYPE) for i in range(10**5))
    small = DeadLetter(ORIGIN, Reason.NOT_JSON, "x")
    for more in ({"rows": rows}, {"stacktrace": "\N{GRINNING FACE}" * 10**6}):
        letter = DeadLetter(origin, Reason.BAD_ROWS, **worst, **more)  # type: ignore[arg-type]
        found = dead_letters("t.dead-letters", [small, letter, small], ROOM_BYTES)
        assert max(map(found.bytes_of, range(3))) <= ROOM_BYTES
        assert found.headers is not None
        headers = dict(found.headers[1])
        assert headers.get("grove-dlq-left-out") == (left_out and left_out.encode())
        assert headers["grove-dlq-reason"] == b"bad-rows"
        assert headers["__streams.errors.offset"] == b"5", "it can be read where it lies"
        assert (found.values[1] is None) == (left_out is not None)
        assert (found.keys[1] is None) == (left_out == "value, headers, key")
        assert [found.values[0], found.values[2]] == [b"v", b"v"]


def test_what_an_exception_says_may_hold_what_no_utf8_can() -> None:
    letter = DeadLetter(ORIGIN, Reason.PROCESSING_ERROR, "class 'a\ud800b'")
    assert dict(dead_letter_headers(letter))["__streams.errors.message"] == b"class 'a\\ud800b'"
