"""Microseconds per record for every codec in both directions, beside bare orjson.loads of the same bytes.

    python -m benchmarks.codecs [--records 20000] [--run 2000] [--keys 64] [--repeats 7]

Prints one JSON object. Each figure is the best of the repeats over all records, cut into runs as in a worker.
`decode_json…`, `decode_packed…` and `decode_labels…` decode as a worker does, with kernels for simple rows;
`decode_avro…` runs the program of the schema; `…_by_codec` uses the codec alone. Beside them: orjson.loads of
the same bytes, the documents dropped at once or kept for the run.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson

from topics.codecs import (
    CONTENT_TYPES,
    Limits,
    decode_instances,
    decode_label_requests,
    decode_labels,
    decode_predictions,
    encode_instances,
    encode_label_requests,
    encode_labels,
    encode_predictions,
)
from topics.codecs.avro.input_schemas import instance_schema
from topics.codecs.compiled.decode import InstanceDecoder, LabelDecoder
from topics.codecs.compiled.encode import encode_answers
from topics.codecs.compiled.encode_avro import avro_answers, avro_requests
from topics.codecs.compiled.encode_avro_inputs import AvroInputs
from topics.codecs.compiled.encode_requests import encode_requests
from topics.columns.records import Features, Format, LabelRequests, Predictions, RawRecords
from topics.registry.registered_schema import RegisteredSchema, SchemaId

FEATURES = 10
BLOCK_ROWS = 1000
CLASSES = ("0", "1")
SCHEMA_ID = 7
LIMITS = Limits()
Decoder = Callable[[RawRecords, Limits], Any]


class Sample:
    """Rows of 10 features with labels, as the encoders take them."""

    def __init__(self, records: int) -> None:
        rng = np.random.default_rng(7)
        self.n = records
        self.names = [f"attribute_{number}" for number in range(FEATURES)]
        self.values = rng.random((records, FEATURES)) * 10
        self.labels = [CLASSES[code] for code in rng.integers(0, 2, records).tolist()]
        self.nominal = [("red", "green", "blue")[code] for code in rng.integers(0, 3, records).tolist()]
        self.probability = rng.dirichlet((2.0, 2.0), records)
        self.ids = [f"order-{number}" for number in range(records)]

    def features(self, start: int, stop: int, *, strings: bool = False) -> Features:
        cells: dict[int, list[str | None]] | None = {0: [*self.nominal[start:stop]]} if strings else None
        return Features.of(self.names, self.values[start:stop], cells)

    def predictions(self, start: int, stop: int) -> Predictions:
        probability = self.probability[start:stop]
        return Predictions(
            CLASSES,
            self.ids[start:stop],
            probability.argmax(axis=1).astype(np.int32),
            probability,
            np.arange(start, stop, dtype=np.int64),
        )

    def requests(self, start: int, stop: int) -> LabelRequests:
        n = stop - start
        return LabelRequests(
            self.ids[start:stop],
            self.ids[start:stop],
            [self.features(start, stop)],
            list(self.labels[start:stop]),
            ["variable_uncertainty"] * n,
            self.probability[start:stop, 0],
            np.full(n, 1_800_000_000_000, dtype=np.int64),
        )


def runs(
    values: Sequence[bytes], size: int, keys: int, headers: tuple[tuple[str, bytes], ...] = ()
) -> list[RawRecords]:
    names = [f"model-{number}" for number in range(keys)]
    batches = []
    for start in range(0, len(values), size):
        part: list[bytes | None] = [*values[start : start + size]]
        n = len(part)
        key: list[bytes | None] = [names[(start + row) % keys].encode() for row in range(n)]
        offsets = list(range(start, start + n))
        batches.append(RawRecords("instances", 3, offsets, [0] * n, key, part, [headers] * n))
    return batches


def microseconds(work: Callable[[], Any], rows: int, repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return round(best / rows * 1e6, 3)


def each(function: Callable[[Any], Any], items: Sequence[Any]) -> Callable[[], None]:
    def work() -> None:
        for item in items:
            function(item)

    return work


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--run", type=int, default=2_000, help="records of a run (max.poll.records)")
    parser.add_argument("--keys", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    sample, n = Sample(options.records), options.records
    spans = [(start, min(start + options.run, n)) for start in range(0, n, options.run)]
    blocks = [(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)]
    figures: dict[str, float] = {}

    def measure(name: str, work: Callable[[], Any]) -> None:
        figures[name] = microseconds(work, n, options.repeats)

    def both(name: str, codec: Decoder, by_shape: Decoder, values: list[bytes], *header: Any) -> None:
        """Measure the codec alone, and the worker's decoder."""
        batches = runs(values, options.run, options.keys, *header)
        measure(f"{name}_by_codec", each(lambda raw: codec(raw, LIMITS), batches))
        measure(name, each(lambda raw: by_shape(raw, LIMITS), batches))

    whole = sample.features(0, n)
    plain = encode_instances(whole, labels=sample.labels)
    measure("orjson_loads", each(orjson.loads, plain))
    measure(
        "orjson_loads_kept", each(lambda run: list(map(orjson.loads, run)), [plain[a:b] for a, b in spans])
    )
    both("decode_json", decode_instances, InstanceDecoder(), plain)
    with_id = encode_instances(whole, labels=sample.labels, ids=sample.ids)
    both("decode_json_with_id", decode_instances, InstanceDecoder(), with_id)
    header = (("content-type", CONTENT_TYPES["json"].encode()),)
    both("decode_json_with_header", decode_instances, InstanceDecoder(), plain, header)
    mixed = encode_instances(sample.features(0, n, strings=True), labels=sample.labels)
    both("decode_json_with_strings", decode_instances, InstanceDecoder(), mixed)
    stormy = [b"{" if row % 10 == 0 else value for row, value in enumerate(plain)]
    both("decode_json_tenth_malformed", decode_instances, InstanceDecoder(), stormy)
    packed = encode_instances(whole, labels=sample.labels, format="packed")
    both("decode_packed", decode_instances, InstanceDecoder(), packed)
    packed = encode_instances(whole, labels=sample.labels, ids=sample.ids, format="packed")
    both("decode_packed_with_id", decode_instances, InstanceDecoder(), packed)
    arrow = [
        encode_instances(sample.features(start, stop), labels=sample.labels[start:stop], format="arrow")[0]
        for start, stop in blocks
    ]
    measure("decode_arrow_row", each(decode_instances, runs(arrow, 2, 1)))
    who = [f"annotator {number % 7}" for number in range(n)]
    for form in ("json", "packed"):
        labels = encode_labels(sample.ids, sample.labels, format=form)
        both(f"decode_labels_{form}", decode_labels, LabelDecoder(), labels)
        labels = encode_labels(sample.ids, sample.labels, annotators=who, format=form)
        both(f"decode_labels_{form}_with_annotator", decode_labels, LabelDecoder(), labels)
        labels = encode_labels(sample.ids, sample.labels, features=whole, format=form)
        both(f"decode_labels_{form}_with_features", decode_labels, LabelDecoder(), labels)

    def both_ways(form: Format) -> None:
        cut = blocks if form == "arrow" else spans
        parts = [(sample.features(*span), sample.labels[span[0] : span[1]]) for span in cut]
        measure(
            f"encode_instances_{form}",
            each(lambda part: encode_instances(part[0], labels=part[1], format=form), parts),
        )
        answers = [sample.predictions(*span) for span in cut]
        by_codec = "" if form == "arrow" else "_by_codec"
        measure(
            f"encode_predictions_{form}{by_codec}",
            each(lambda part: encode_predictions(part, form), answers),
        )
        if by_codec:
            measure(f"encode_predictions_{form}", each(lambda part: encode_answers(part, form), answers))
        written = [value for part in answers for value in encode_predictions(part, form)]
        measure(f"decode_predictions_{form}", lambda: decode_predictions(written))

    avro, decoder = AvroInputs(SCHEMA_ID, SCHEMA_ID, (), FEATURES, by_name=True), InstanceDecoder()
    for name, ids in (("decode_avro", None), ("decode_avro_with_id", sample.ids)):
        text = instance_schema(sample.names, (), has_ids=ids is not None, has_labels=True)
        schemas: dict[SchemaId, RegisteredSchema] = {SCHEMA_ID: RegisteredSchema(SCHEMA_ID, "AVRO", text)}
        values = avro.instances(whole, ids, sample.labels, has_labels=True)
        batches = [raw.read_by(schemas) for raw in runs(values, options.run, options.keys)]
        measure(name, each(lambda raw: decoder(raw, LIMITS), batches))
    measure(
        "encode_instances_avro", lambda: avro.instances(whole, sample.ids, sample.labels, has_labels=True)
    )
    answers = [sample.predictions(*span) for span in spans]
    measure("encode_predictions_avro", each(lambda part: avro_answers(part, SCHEMA_ID), answers))
    asked_parts = [sample.requests(*span) for span in spans]
    measure("encode_label_requests_avro", each(lambda part: avro_requests(part, SCHEMA_ID), asked_parts))
    measure("encode_label_requests_json_as_a_worker", each(encode_requests, asked_parts))
    both_ways("json")
    both_ways("packed")
    both_ways("arrow")
    measure("encode_labels_json", lambda: encode_labels(sample.ids, sample.labels))
    requests = sample.requests(0, n)
    measure("encode_label_requests_json", lambda: encode_label_requests(requests))
    asked = encode_label_requests(requests)
    measure("decode_label_requests_json", lambda: decode_label_requests(asked))
    shape = {
        "records": n,
        "run": options.run,
        "keys": options.keys,
        "features": FEATURES,
        "block_rows": BLOCK_ROWS,
    }
    print(json.dumps({"unit": "microseconds a row", **shape, "figures": figures}, indent=2))


if __name__ == "__main__":
    main()
