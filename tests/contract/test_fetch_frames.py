"""Contract test of aiokafka 0.14: our requests of records and their answers are those of its structures."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from aiokafka.protocol.fetch import FetchRequest, FetchRequest_v11, FetchResponse_v11
from hypothesis import given
from hypothesis import strategies as st

from streamapp.worker.transport.fetch_frames import FetchAnswer, FetchFrame

int16, int32, int64 = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (16, 32, 64))
names = st.text(max_size=20).filter(lambda name: "\0" not in name)
aborted = st.none() | st.lists(st.tuples(int64, int64), max_size=3)
answered = st.tuples(int32, int16, int64, int64, int64, aborted, int32, st.none() | st.binary(max_size=60))
answers = st.builds(
    FetchResponse_v11,
    int32,
    int16,
    int32,
    st.lists(st.tuples(names, st.lists(answered, max_size=4)), max_size=3),
)
rows = st.lists(st.tuples(int32, int64, int32), max_size=4)


@given(answers)
def test_an_answer_has_the_fields_that_aiokafka_reads(answer: Any) -> None:
    frame = answer.encode()
    theirs, ours = FetchResponse_v11.decode(BytesIO(frame)), FetchAnswer.decode(BytesIO(frame))
    assert vars(ours) == vars(theirs)
    assert ours.API_VERSION == theirs.API_VERSION


@given(answers, st.data())
def test_an_answer_that_ends_early_is_an_error(answer: Any, data: st.DataObject) -> None:
    frame = answer.encode()
    end = data.draw(st.integers(0, len(frame) - 1))
    with pytest.raises(ValueError, match="must have the length that its fields give"):
        FetchAnswer.decode(BytesIO(frame[:end]))


@given(st.lists(st.tuples(names, rows), max_size=3), st.lists(st.tuples(names, st.lists(int32))), names)
def test_a_request_has_the_bytes_that_aiokafka_writes(
    topics: list[Any], forgotten: list[Any], rack: str
) -> None:
    whole = FetchRequest(500, 1, 1 << 20, 1, topics, rack)
    theirs, ours = whole.build(FetchRequest_v11), whole.build(FetchFrame)
    for built in (theirs, ours):
        built.session_id, built.session_epoch, built.forgotten_topics_data = 41, 3, forgotten
    assert ours.encode() == theirs.encode()


@given(int32, names)
def test_a_header_has_the_bytes_and_the_number_that_aiokafka_has(number: int, client: str) -> None:
    whole = FetchRequest(500, 1, 1 << 20, 1, [])
    theirs, ours = whole.build(FetchRequest_v11), whole.build(FetchFrame)
    headers = [built.build_request_header(number, client).encode() for built in (theirs, ours)]
    assert headers[0] == headers[1]
    buffer = BytesIO(number.to_bytes(4, signed=True) + b"rest")
    assert ours.parse_response_header(buffer).correlation_id == number
    assert buffer.read() == b"rest"
    assert ours.RESPONSE_TYPE is FetchAnswer
