"""A weight of 1e20 in a running worker: once it ended in a loop for ever, and so did every restart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pytest

from tests.broker.workers import PATIENCE, Installation
from tests.conftest import Broker
from topics.codecs import encode_instances
from topics.columns.records import Features

pytestmark = pytest.mark.broker

EFDT = {"learner": {"name": "efdt", "grace_period": 20, "delta": 0.1, "tau": 0.3, "revisit_period": 20}}
SETTINGS = {"GROVE_MODEL_SPEC": orjson.dumps({**EFDT, "query": {"name": "always"}}).decode()}
N = 400


def test_records_of_a_weight_out_of_range_are_dead_letters_and_all_others_are_answered(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "heavy.", 1, tmp_path, module="streamapp worker")
    producer = place.producer()

    def send(topic: str, value: bytes) -> None:
        producer.produce(topic, value, b"m")

    def instances(first: int, weight: float) -> None:
        """Send N labelled instances, a heavy one and a block with a heavy row among them."""
        for i in range(first, first + N):
            body = {
                "id": f"i{i}",
                "features": {"x": i % 10, "y": i % 7},
                "label": "hi" if i % 10 > 4 else "lo",
            }
            if i == first + N // 2:
                send(place.names.instances, orjson.dumps(body | {"id": f"h{i}", "weight": weight}))
            send(place.names.instances, orjson.dumps(body | {"weight": 1e9 if i == first else 1.0}))
        table = pa.table(
            {"x": [1.0, 2.0], "y": [3.0, 4.0], "weight": [1.0, weight], "id": [f"b{first}", "no"]}
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        send(place.names.instances, sink.getvalue().to_pybytes())
        features = Features.of(None, np.array([[1.0, 2.0]]))
        packed = encode_instances(features, format="packed", ids=[f"p{first}"], weights=np.array([weight]))
        send(place.names.instances, packed[0])

    instances(0, 1e20)
    assert producer.flush(PATIENCE) == 0
    with place.worker("w", fresh=False, **SETTINGS) as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        worker.kill()
    instances(N, 1e300)
    label = {"id": f"b{N}", "label": "hi"}
    send(place.names.labels, orjson.dumps(label | {"weight": 2e9}))
    send(place.names.labels, orjson.dumps(label))
    assert producer.flush(PATIENCE) == 0
    with place.worker("w", fresh=False, **SETTINGS) as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0, worker.log

    values = (message.value() for message in place.raw(place.names.predictions))
    answers = Counter(orjson.loads(value)["id"] for value in values if value.startswith(b"{"))
    assert {name: n for name, n in answers.items() if name.startswith("i")} == {
        f"i{i}": 1 for i in range(2 * N)
    }
    letters = [dict(message.headers()) for message in place.raw(place.names.dead_letters)]
    reasons = Counter(headers["grove-dlq-reason"].decode() for headers in letters)
    assert reasons == {"bad-weight": 5, "bad-rows": 2}
    details = {headers["__streams.errors.message"].decode() for headers in letters}
    assert any(text.startswith("weight=1e+20 must be above 0 and at most 1e+09; scale") for text in details)
