"""Columns of texts hold what lists of them do."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topics.codecs.compiled.encode import json_ids
from topics.codecs.compiled.text_columns import numbered, repeated, text_spans
from topics.codecs.offset_ids import OffsetIds
from topics.columns.spans import Spans, Texts

NUMBERS = st.sampled_from([0, 1, 9, 10, 99, 2**63 - 1, 10**18, 10**18 - 1]) | st.integers(-(2**63), 2**63 - 1)


@given(st.sampled_from([b"", b"3-", "é".encode()]), st.lists(NUMBERS, max_size=20), st.booleans())
def test_numbers_behind_a_head(head: bytes, numbers: list[int], positive: bool) -> None:
    given_numbers = [max(number, 0) for number in numbers] if positive else numbers
    column = numbered(head, np.array(given_numbers, dtype=np.int64))
    assert list(column) == [head + str(number).encode() for number in given_numbers]


@given(st.lists(st.text(max_size=3), max_size=9), st.data())
def test_texts_and_those_that_are_there_once(texts: list[str], data: st.DataObject) -> None:
    expected = [text.encode() for text in texts]
    assert list(text_spans(texts)) == expected
    codes = data.draw(st.lists(st.sampled_from(range(len(texts))), max_size=9)) if texts else []
    assert list(repeated(expected, np.array(codes, dtype=np.int64))) == [expected[code] for code in codes]


@given(st.lists(st.text(max_size=5) | st.sampled_from(["r1", 'a"b', "a\\b", "\n", "\x7f", "é"]), min_size=1))
def test_texts_in_a_buffer_are_what_strings_are(given_texts: list[str]) -> None:
    spans = Spans.of([b"before", *(text.encode() for text in given_texts), b"behind"])[1:-1]
    texts = Texts(spans)
    assert texts == given_texts
    assert texts[0] == given_texts[0]
    assert texts[1:] == given_texts[1:]
    assert texts.taken(np.array([len(texts) - 1, 0])) == [given_texts[-1], given_texts[0]]
    assert list(text_spans(texts)) == list(text_spans(given_texts))
    assert json_ids(texts).tobytes() == json_ids(given_texts).tobytes()


def test_ids_by_offset() -> None:
    assert list(text_spans(OffsetIds("7-", [5, 0, 12]))) == [b"7-5", b"7-0", b"7-12"]
