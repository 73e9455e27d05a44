"""A member that is declared with its column is written, read, cut and joined: no codec names it."""

import math
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
import orjson
import pytest

from topics.codecs import decode_predictions, encode_predictions
from topics.codecs.codec import codec
from topics.codecs.compiled.encode import encode_answers
from topics.columns import records
from topics.columns.members import member, members
from topics.columns.records import Format, Predictions
from topics.columns.row_cuts import joined, taken
from topics.columns.spans import Spans, Texts


@dataclass(frozen=True, slots=True, eq=False)
class Extended(Predictions):
    """Predictions with one more member than the product has."""

    margin: list[float | None] | None = field(
        default=None, metadata=member("margin", float, str, float, block="string")
    )


def extended(*ids: str) -> Extended:
    n = len(ids)
    columns = np.zeros(n, dtype=np.int32), np.full((n, 3), 0.5), np.arange(n)
    margin = [0.25, None, 0.5][:n]
    return Extended(("a", "b"), list(ids), *columns, [None, "x <= 1", None][:n], margin=margin)


def test_a_declared_member_is_in_json_where_a_row_has_it() -> None:
    answers = [orjson.loads(value or b"") for value in encode_answers(extended("i", "j", "k"), "json")]
    assert [answer.get("margin") for answer in answers] == ["0.25", None, "0.5"]
    assert ["margin" in answer for answer in answers] == [True, False, True]
    assert [answer.get("explanation") for answer in answers] == [None, "x <= 1", None]
    assert answers[1] == orjson.loads(encode_predictions(extended("i", "j"))[1])


@pytest.mark.parametrize("form", ["json", "arrow"])
def test_a_declared_member_is_read_back(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("json", "arrow"):
        monkeypatch.setattr(f"topics.codecs.{package}.predictions.Predictions", Extended)
    values = codec(form).write_predictions(extended("i", "j", "k"))
    rows = [row for value in values for row in codec(form).read_predictions(value)]
    assert [row.members.get("margin") for row in rows] == [0.25, None, 0.5]
    assert [row.members.get("explanation") for row in rows] == [None, "x <= 1", None]


def test_received_predictions_have_every_member() -> None:
    received = decode_predictions(encode_predictions(extended("i", "j")))
    for column in members(Predictions):
        assert len(getattr(received, column)) == 2


def test_formats_are_those_that_codecs_have() -> None:
    for form in get_args(Format):
        codec(form)


def test_rows_are_taken_and_joined_whatever_columns_there_are() -> None:
    batch = extended("i", "j", "k")
    some = taken(batch, [2, 0])
    assert (some.classes, some.ids, some.margin, some.acquired) == (("a", "b"), ["k", "i"], [0.5, 0.25], None)
    assert some.version.tolist() == [2, 0]
    both = joined([some, batch])
    assert both.ids == ["k", "i", "i", "j", "k"]
    assert both.margin == [0.5, 0.25, 0.25, None, 0.5]
    assert both.probability.shape == (5, 3)


def test_joined_texts_are_texts_and_surplus_columns_are_left_out() -> None:
    def batch(name: bytes, width: int) -> Predictions:
        columns = np.zeros(1, dtype=np.int32), np.full((1, width), math.nan), np.zeros(1, dtype=np.int64)
        return Predictions(("a",), Texts(Spans.of([name])), *columns)

    both: Any = joined([batch(b"x", 2), batch(b"y", 1)])
    assert isinstance(both.ids, Texts) and list(both.ids) == ["x", "y"]
    assert both.probability.shape == (2, 1)


@pytest.mark.parametrize("kind", [records.Predictions, records.LabelRequests])
def test_members_have_different_names(kind: type) -> None:
    names = [declared.name for declared in members(kind).values()]
    assert len(set(names)) == len(names) > 1
