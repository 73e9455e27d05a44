"""What every codec owes: round trips, independence of how runs are cut, good records untouched by bad ones.

Runs over every registered format, so that a new one is tested on the day it is registered.
"""

from collections import Counter
from typing import Any

import numpy as np
import orjson
import pytest

from tests.unit.topics.codecs.samples import cells, classes, keys_of, run_of
from topics.codecs import (
    CONTENT_TYPES,
    decode_instances,
    decode_labels,
    decode_predictions,
    encode_instances,
    encode_labels,
    encode_predictions,
)
from topics.codecs.codec import CODECS
from topics.codecs.content_types import wire_of_content_type, wire_of_value
from topics.columns.records import Features, Format, Predictions

FORMATS = sorted(CODECS)
N = 1000


def numbers(n: int = N, width: int = 4, *, missing: float = 0.1) -> Features:
    rng = np.random.default_rng(11)
    values = rng.normal(size=(n, width)) * 10.0 ** rng.integers(-300, 300, (n, width))
    values[rng.random((n, width)) < missing] = np.nan
    return Features.of([f"f{column}" for column in range(width)], values)


def names(n: int = N) -> list[str | None]:
    rng = np.random.default_rng(12)
    known = ["0", "1", "-1", "spam", "é", "01", "2147483648", None]
    return [known[code] for code in rng.integers(0, len(known), n)]


def values_of(decoded: Any) -> np.ndarray:
    values = np.full((len(decoded), decoded.features[0].values.shape[1]), -1.0)
    for group in decoded.features:
        values[group.rows] = group.values
    return values


@pytest.mark.parametrize("form", FORMATS)
def test_content_type_and_first_byte_lead_to_the_format(form: Format) -> None:
    assert wire_of_content_type(CONTENT_TYPES[form].encode()) == form
    assert wire_of_value(encode_instances(numbers(1), format=form)[0]) == form
    assert wire_of_value(encode_labels(["i"], ["x"], format=form)[0]) == form


@pytest.mark.parametrize("form", FORMATS)
def test_instances_come_back_bit_for_bit(form: Format) -> None:
    features, labels = numbers(), names()
    ids = [f"id-{row * 7919}" for row in range(N)]
    weights = np.random.default_rng(13).random(N) + 0.001
    decoded = decode_instances(
        run_of(encode_instances(features, format=form, ids=ids, labels=labels, weights=weights))
    )
    assert decoded.malformed == []
    assert decoded.ids == ids
    assert classes(decoded) == labels
    assert decoded.weight.tobytes() == weights.tobytes()
    assert np.array_equal(values_of(decoded), features.values, equal_nan=True)


@pytest.mark.parametrize("form", FORMATS)
def test_labels_come_back(form: Format) -> None:
    labels = names()
    ids = [f"id-{row}" for row in range(N)]
    annotators = [None if row % 3 else f"ann-{row % 5}" for row in range(N)]
    weights = np.linspace(0.5, 2, N)
    sent = encode_labels(ids, labels, format=form, annotators=annotators, weights=weights, features=numbers())
    decoded = decode_labels(run_of(sent))
    assert decoded.malformed == []
    assert decoded.ids == ids
    assert classes(decoded) == labels
    assert decoded.annotators == annotators
    assert decoded.weight.tolist() == weights.tolist()
    assert np.array_equal(values_of(decoded), numbers().values, equal_nan=True)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("count", [1, 2, 7])
def test_predictions_come_back(form: Format, count: int) -> None:
    rng = np.random.default_rng(14)
    probability = rng.dirichlet(np.ones(count), N)
    sent = Predictions(
        tuple(f"class {code}" for code in range(count)),
        [f"3-{row}" for row in range(N)],
        probability.argmax(axis=1).astype(np.int32),
        probability,
        rng.integers(0, 2**62, N),
    )
    received = decode_predictions(encode_predictions(sent, form))
    assert received.malformed == []
    assert received.ids == sent.ids
    assert received.labels == [sent.classes[code] for code in sent.prediction]
    assert received.version.tolist() == sent.version.tolist()
    read = np.array([[row[name] for name in sent.classes] for row in received.probabilities])
    assert np.abs(read - probability).max() <= 0.5e-4 + 1e-12


def mixture(n: int) -> tuple[list[bytes | None], list[bytes]]:
    """Return records of all formats and shapes, every third of them bad, and their keys."""
    json = encode_instances(numbers(n), labels=names(n))
    text = encode_instances(
        Features.of(["t", "u"], np.full((n, 2), np.nan), {0: [f"v{row % 5}" for row in range(n)]})
    )
    packed = encode_instances(numbers(n, 3), labels=names(n), format="packed")
    narrow = encode_instances(numbers(n, 2), ids=[str(row) for row in range(n)], format="packed")
    arrow = [
        encode_instances(
            Features.of(["x"], [[float(row)], [np.inf if row % 5 == 0 else 1.0]]), format="arrow"
        )[0]
        for row in range(n)
    ]
    bad: list[bytes | None] = [
        None,
        b"",
        b"{",
        b"[1]",
        b"\xd6G",
        b"\xff\xff\xff\xff\x10\x00\x00\x00",
        b"\x00garbage",
        b'{"features":{"a":NaN}}',
        b'{"features":{"a":[]}}',
        b'{"features":[1],"weight":-1}',
        b'{"features":[1],"label":0.5}',
    ]
    good = (json, text, packed, narrow, arrow)
    values = [bad[row % len(bad)] if row % 3 == 2 else good[row % 7 % 5][row] for row in range(n)]
    return values, [b"model-%d" % (row % 11) for row in range(n)]


def test_a_run_says_the_same_however_it_is_cut() -> None:
    n = 600
    values, keys = mixture(n)
    whole = decode_instances(run_of(values, keys=keys))
    rows, bad = [], []
    for start, stop in zip([0, 1, 2, 50, 51, 300], [1, 2, 50, 51, 300, n], strict=True):
        part = run_of(values, keys=keys)
        cut = type(part)(
            part.topic,
            part.partition,
            part.offsets[start:stop],
            part.timestamps[start:stop],
            part.keys[start:stop],
            part.values[start:stop],
            part.headers[start:stop],
        )
        decoded = decode_instances(cut)
        rows += [
            (record + start, *rest)
            for record, *rest in zip(
                decoded.record.tolist(),
                decoded.row.tolist(),
                decoded.ids,
                keys_of(decoded),
                classes(decoded),
                decoded.weight.tolist(),
                cells(decoded),
                strict=True,
            )
        ]
        bad += [
            (malformed.record + start, malformed.reason, malformed.detail, malformed.rows)
            for malformed in decoded.malformed
        ]
    assert rows == list(
        zip(
            whole.record.tolist(),
            whole.row.tolist(),
            whole.ids,
            keys_of(whole),
            classes(whole),
            whole.weight.tolist(),
            cells(whole),
            strict=True,
        )
    )
    assert bad == [
        (malformed.record, malformed.reason, malformed.detail, malformed.rows)
        for malformed in whole.malformed
    ]


def test_malformed_storm() -> None:
    """100,000 bad records of every kind among 100,000 good ones, in runs as a worker sees them."""
    good = [orjson.dumps({"id": f"g{row}", "features": {"a": row, "b": 0.5}}) for row in range(2000)]
    storm: dict[str, bytes | None] = {
        "null-value": None,
        "not-json": b'{"features":{"a":1}',
        "not-finite": b'{"features":{"a":Infinity}}',
        "wrong-type": b'{"features":{"a":{"b":1}}}',
        "missing-field": b'{"id":"x"}',
        "bad-weight": b'{"features":[1],"weight":0}',
        "bad-header": b"\xd6G\x02" + bytes(13),
        "wrong-length": b"\xd6G",
        "bad-block": b"\xff\xff\xff\xff",
        "unknown-content-type": b"{}",
    }
    slugs = list(storm)
    values: list[bytes | None] = []
    headers: list[Any] = []
    for row in range(1000):
        slug = slugs[row % len(slugs)]
        values += [good[row], storm[slug]]
        headers += [(), [("content-type", b"a/b")] if slug == "unknown-content-type" else ()]
    run = run_of(values, headers=headers)
    counts: Counter[str] = Counter()
    for _ in range(100):
        decoded = decode_instances(run)
        assert decoded.ids == [f"g{row}" for row in range(1000)]
        assert decoded.record.tolist() == list(range(0, 2000, 2))
        counts.update(str(malformed.reason) for malformed in decoded.malformed)
    assert counts == dict.fromkeys(slugs, 10_000)
