"""Answers and label requests in Avro have the content of their JSON, whatever is in them."""

import random
from typing import Any
from uuid import UUID

import numpy as np
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.test_answers import Answered
from tests.property.test_requests import Asked
from tests.tiers import examples
from topics.codecs import encode_label_requests, encode_predictions
from topics.codecs.avro.output_reader import OutputReader
from topics.codecs.avro.output_schemas import Output, current
from topics.codecs.compiled.encode_avro import avro_answers, avro_requests
from topics.columns.records import Predictions
from topics.registry.registered_schema import RegisteredSchema

ID = 258


def reader(output: Output) -> OutputReader:
    def schema_of(schema_id: int | UUID) -> RegisteredSchema:
        assert schema_id == ID
        return RegisteredSchema(schema_id, "AVRO", current(output))

    return OutputReader(schema_of)


def without_nulls(document: dict[str, Any], *kept: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None or name in kept}


@settings(max_examples=examples(100))
@given(st.integers(0, 2**63))
def test_answers_have_the_content_of_json(seed: int) -> None:
    rng = random.Random(seed)
    predictions: Predictions = Answered(rng).predictions(rng.randint(1, 12))
    written = [value or b"" for value in avro_answers(predictions, ID)]
    texts = reader("prediction").texts(written)
    shares = np.clip(np.nan_to_num(predictions.probability[:, : len(predictions.classes)]), 0.0, 1.0)
    for text, plain, row in zip(texts, encode_predictions(predictions), shares.tolist(), strict=True):
        ours, theirs = (without_nulls(orjson.loads(value), "label") for value in (text, plain))
        assert ours.pop("untrained") == theirs.pop("untrained", False)
        assert ours.pop("probabilities") == dict(zip(predictions.classes, row, strict=True))
        assert set(theirs.pop("probabilities")) == set(predictions.classes)
        assert ours == theirs


@settings(max_examples=examples(100))
@given(st.integers(0, 2**63))
def test_requests_have_the_content_of_json(seed: int) -> None:
    rng = random.Random(seed)
    requests = Asked(rng).requests(rng.randint(1, 12))
    written = [value or b"" for value in avro_requests(requests, ID)]
    texts = reader("label-request").texts(written)
    for text, plain in zip(texts, encode_label_requests(requests), strict=True):
        kept = ("features", "prediction", "utility", "expires_ms")
        assert without_nulls(orjson.loads(text), *kept) == orjson.loads(plain)
