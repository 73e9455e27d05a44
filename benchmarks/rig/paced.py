"""A producer with a steady rate: the id of each record is the time of producing it (monotonic, ns)."""

from __future__ import annotations

import time

import orjson
from confluent_kafka import Producer

from benchmarks.rig.producer_arguments import producer_parser
from benchmarks.rig.stream import NAMES, generate, model_keys
from topics.clients.partitioner import partition_of

STEP_SECONDS = 0.001


def main() -> None:
    parser = producer_parser()
    parser.add_argument(
        "--lacking", type=float, default=0.0, help="share of records without the last feature"
    )
    options = parser.parse_args()
    n = int(options.rate * options.seconds)
    rows = generate(n, model_keys(options.keys, options.partitions))
    keys = [key.encode() for key in rows.keys]
    places = [partition_of(key, options.partitions) for key in keys]
    every = 1.0 / options.lacking if options.lacking else n + 1.0  # one in this many records lacks it
    lacks = [int((number + 1) / every) > int(number / every) for number in range(n)]
    documents = (dict(zip(NAMES, x, strict=True)) for x in rows.x.tolist())
    features = []
    for document, is_short in zip(documents, lacks, strict=True):
        if is_short:
            del document[NAMES[-1]]
        features.append(orjson.dumps(document))
    producer = Producer(
        {"bootstrap.servers": options.bootstrap, "linger.ms": options.linger_ms, "enable.idempotence": True}
    )
    start, sent = time.monotonic(), 0
    while sent < n:
        due = min(n, int((time.monotonic() - start) * options.rate))
        for number in range(sent, due):
            label, key = int(rows.y[number]), rows.key[number]
            value = b'{"id":"%d","features":%b,"label":"%d"}' % (time.monotonic_ns(), features[number], label)
            producer.produce(options.topic, value, keys[key], places[key])
        sent = due
        producer.poll(STEP_SECONDS)
    if n_left := producer.flush(30):
        message = f"{n_left} records were not delivered"
        raise RuntimeError(message)


if __name__ == "__main__":
    main()
