"""Whatever the bytes: nothing is raised, and every record has exactly one outcome.

Whatever the columns: they come back.
"""

import math
from collections.abc import Sequence

import numpy as np
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tests.unit.topics.codecs.samples import FIRST_OFFSET, PARTITION, cells, classes, keys_of, run_of
from topics.codecs import (
    CONTENT_TYPES,
    Limits,
    decode_controls,
    decode_drift_alerts,
    decode_evaluations,
    decode_instances,
    decode_label_requests,
    decode_labels,
    decode_model_events,
    decode_predictions,
    encode_instances,
    encode_label_requests,
    encode_labels,
    encode_predictions,
)
from topics.columns.records import (
    MAX_WEIGHT,
    Features,
    Format,
    Headers,
    Instances,
    LabelRequests,
    Labels,
    Predictions,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = texts.filter(bool)
cell_numbers = st.floats(allow_nan=False, allow_infinity=False)
formats: st.SearchStrategy[Format] = st.sampled_from(["json", "packed", "arrow"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | cell_numbers | texts,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(texts, children, max_size=3),
    max_leaves=8,
)
members = [
    "features",
    "id",
    "label",
    "weight",
    "declined",
    "annotator",
    "command",
    "probabilities",
    "version",
]
documents = st.dictionaries(st.sampled_from(members) | texts, json_values, max_size=6).map(orjson.dumps)


def matrices(n: int, width: int, cells: st.SearchStrategy[float]) -> st.SearchStrategy[np.ndarray]:
    row = st.lists(cells, min_size=width, max_size=width)
    return st.lists(row, min_size=n, max_size=n).map(lambda rows: np.array(rows).reshape(n, width))


@st.composite
def columns(draw: st.DrawFn) -> tuple[Features, list[str], list[str | None], np.ndarray]:
    n, width = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    values = draw(matrices(n, width, cell_numbers | st.just(math.nan)))
    reserved = {"id", "label", "weight", "declined", "annotator"}
    taken = st.lists(
        names.filter(lambda name: name not in reserved), min_size=width, max_size=width, unique=True
    )
    ids = draw(st.lists(names, min_size=n, max_size=n))
    labels = draw(st.lists(st.none() | names | st.integers(-3, 3).map(str), min_size=n, max_size=n))
    weights = np.array(draw(st.lists(st.floats(1e-300, MAX_WEIGHT), min_size=n, max_size=n)))
    return Features.of(draw(taken), values), ids, labels, weights


@st.composite
def good_values(draw: st.DrawFn) -> list[bytes]:
    features, ids, labels, weights = draw(columns())
    form: Format = draw(formats)
    if draw(st.booleans()):
        return encode_labels(ids, labels, format=form, weights=weights, features=features)
    chosen = draw(st.none() | st.just(ids))
    return encode_instances(features, format=form, ids=chosen, labels=labels, weights=weights)


@st.composite
def damaged_values(draw: st.DrawFn) -> list[bytes]:
    """Records of any format with a few bytes changed, removed or added."""
    damaged = []
    for value in draw(good_values()):
        content = bytearray(value)
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(content)))
            content[at : at + draw(st.integers(0, 8))] = draw(st.binary(max_size=8))
        damaged.append(bytes(content))
    return damaged


one_value = st.none() | st.binary(max_size=40) | documents
content_types = [name.encode() for name in CONTENT_TYPES.values()] + [b"application/cloudevents+json"]
header_names = st.sampled_from(["content-type", "Content-Type", "traceparent"])
header_values = st.sampled_from(content_types) | st.binary(max_size=5)
headers_of_one = st.just(()) | st.lists(st.tuples(header_names, header_values), max_size=2)
keys_of_one = st.none() | st.binary(max_size=3) | st.just(b"k")
streams_of_values = st.lists(
    one_value.map(lambda value: [value]) | good_values() | damaged_values(), max_size=5
).map(lambda parts: [value for part in parts for value in part])


@st.composite
def runs(draw: st.DrawFn) -> tuple[Sequence[bytes | None], Sequence[bytes | None], Sequence[Headers]]:
    values = draw(streams_of_values)
    n = len(values)
    keys = draw(st.just([b"k"] * n) | st.lists(keys_of_one, min_size=n, max_size=n))
    headers = draw(st.just([()] * n) | st.lists(headers_of_one, min_size=n, max_size=n))
    return values, keys, headers


def check_outcomes(decoded: Instances | Labels, n: int) -> None:
    """Every record has rows or a Malformed without rows; with bad rows it may have both."""
    bad = [malformed.record for malformed in decoded.malformed]
    assert bad == sorted(set(bad))
    good = set(decoded.record.tolist())
    assert good | set(bad) == set(range(n))
    for malformed in decoded.malformed:
        assert len(malformed.detail) <= 300
        if malformed.record in good:
            assert malformed.rows
    rows = len(decoded)
    assert (np.diff(decoded.record) >= 0).all()
    lengths = {
        len(column) for column in (decoded.row, decoded.key, decoded.ids, decoded.label, decoded.weight)
    }
    assert lengths == {rows}
    assert set(range(len(decoded.keys))) == set(decoded.key.tolist())
    assert set(decoded.label.tolist()) - {-1} == set(range(len(decoded.label_values)))
    assert (np.isfinite(decoded.weight) & (decoded.weight > 0)).all()
    assert all(decoded.ids)
    for group in decoded.features:
        assert not np.isinf(group.values).any()


@settings(max_examples=examples(300))
@given(runs())
def test_every_record_has_exactly_one_outcome(run: tuple) -> None:  # type: ignore[type-arg]
    values, keys, headers = run
    raw = run_of(values, keys=keys, headers=headers)
    limits = Limits(record_max_bytes=2000, block_max_rows=5)
    instances = decode_instances(raw, limits)
    check_outcomes(instances, len(values))
    assert all(row is not None for row in cells(instances))
    assert sum(rows for _, _, rows in instances.blocks.tolist()) <= len(instances)
    check_outcomes(decode_labels(raw, limits), len(values))
    controls = decode_controls(raw, limits)
    outcomes = [item.record for item in controls.items] + [item.record for item in controls.malformed]
    assert sorted(outcomes) == list(range(len(values)))


@settings(max_examples=examples(150))
@given(runs())
def test_a_run_is_the_sum_of_its_records(run: tuple) -> None:  # type: ignore[type-arg]
    values, keys, headers = run
    whole = decode_instances(run_of(values, keys=keys, headers=headers))
    rows, bad = [], []
    for record, value in enumerate(values):
        alone = decode_instances(run_of([value], keys=[keys[record]], headers=[headers[record]]))
        # A run of one begins at the first offset: give default ids the offset they have in the whole run.
        ids = [
            name.replace(f"{PARTITION}-{FIRST_OFFSET}", f"{PARTITION}-{FIRST_OFFSET + record}", 1)
            if name.startswith(f"{PARTITION}-{FIRST_OFFSET}")
            else name
            for name in alone.ids
        ]
        weights = alone.weight.tolist()
        rows += [
            (record, *row)
            for row in zip(
                alone.row.tolist(), ids, keys_of(alone), classes(alone), weights, cells(alone), strict=True
            )
        ]
        bad += [(record, malformed.reason, malformed.detail, malformed.rows) for malformed in alone.malformed]
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


@settings(max_examples=examples(200))
@given(columns(), formats)
def test_instances_round_trip(sent: tuple, form: Format) -> None:  # type: ignore[type-arg]
    features, ids, labels, weights = sent
    decoded = decode_instances(
        run_of(encode_instances(features, format=form, ids=ids, labels=labels, weights=weights))
    )
    assert decoded.malformed == []
    assert decoded.ids == ids
    assert classes(decoded) == labels
    assert decoded.weight.tolist() == weights.tolist()
    (group,) = decoded.features
    assert group.names == (None if form == "packed" else features.names)
    assert np.array_equal(group.values, features.values, equal_nan=True)


@settings(max_examples=examples(200))
@given(columns(), formats, st.booleans())
def test_labels_round_trip(sent: tuple, form: Format, with_features: bool) -> None:  # type: ignore[type-arg]
    features, ids, labels, weights = sent
    annotators = [None if label is None else f"ann {label}" for label in labels]
    written = encode_labels(
        ids,
        labels,
        format=form,
        weights=weights,
        annotators=annotators,
        features=features if with_features else None,
    )
    decoded = decode_labels(run_of(written))
    assert decoded.malformed == []
    assert decoded.ids == ids
    assert classes(decoded) == labels
    assert decoded.annotators == annotators
    assert [row is not None for row in cells(decoded)] == [with_features] * len(ids)


@settings(max_examples=examples(200))
@given(st.data(), formats)
def test_predictions_round_trip(data: st.DataObject, form: Format) -> None:
    count, n = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 4))
    classes = tuple(data.draw(st.lists(names, min_size=count, max_size=count, unique=True)))
    probability = data.draw(matrices(n, count, st.floats(0, 1)))
    prediction = np.array(
        data.draw(st.lists(st.integers(-1, count - 1), min_size=n, max_size=n)), dtype=np.int32
    )
    version = np.array(data.draw(st.lists(st.integers(0, 2**63 - 1), min_size=n, max_size=n)), dtype=np.int64)
    ids = data.draw(st.lists(texts, min_size=n, max_size=n))
    received = decode_predictions(
        encode_predictions(Predictions(classes, ids, prediction, probability, version), form)
    )
    assert received.malformed == []
    assert received.ids == ids
    assert received.labels == [None if code < 0 else classes[code] for code in prediction]
    assert received.version.tolist() == version.tolist()
    for row, sent in zip(received.probabilities, probability.tolist(), strict=True):
        assert list(row) == list(classes)
        assert np.allclose(list(row.values()), sent, atol=0.5e-4 + 1e-12)


@settings(max_examples=examples(100))
@given(columns(), st.lists(st.floats(allow_infinity=False), min_size=6, max_size=6))
def test_label_requests_round_trip(sent: tuple, utilities: list[float]) -> None:  # type: ignore[type-arg]
    features, ids, labels, _ = sent
    n = len(ids)
    expires = np.arange(n, dtype=np.int64) - 1
    requests = LabelRequests(ids, ids, [features], labels, ids, np.array(utilities[:n]), expires)
    received = decode_label_requests(encode_label_requests(requests))
    assert received.malformed == []
    assert received.instance_ids == ids
    assert received.predictions == labels
    assert np.array_equal(received.utility, requests.utility, equal_nan=True)
    assert received.expires_ms.tolist() == expires.tolist()
    assert cells(received) == cells(requests)  # type: ignore[arg-type]


@settings(max_examples=examples(200))
@given(
    st.lists(st.binary(max_size=60) | documents | damaged_values().map(lambda values: values[0]), max_size=4)
)
def test_reading_outputs_never_raises(values: list[bytes]) -> None:
    n = len(values)
    predictions = decode_predictions(values)
    assert set(predictions.record.tolist()) | {
        malformed.record for malformed in predictions.malformed
    } == set(range(n))
    requests = decode_label_requests(values)
    assert requests.record is not None
    assert sorted(
        [*requests.record.tolist(), *(malformed.record for malformed in requests.malformed)]
    ) == list(range(n))
    assert len(decode_drift_alerts(values)) == len(decode_evaluations(values)) == n
    assert len(decode_model_events(values)) == n
