"""Blocks that a worker computes in a thread, among other records, while it commits, cuts and dies."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pytest

from streamapp.worker.observability.pages.snapshot_page import fetch_model
from streamapp.worker.processing.run_groups import LARGE_RECORD
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker
from topics.codecs import decode_predictions, encode_instances
from topics.columns.records import Features

pytestmark = pytest.mark.broker

ROWS, COLUMNS, BLOCKS = 2000, 20, 12
OFTEN = {  # every run brings a snapshot under way, most commits a manifest
    "GROVE_SNAPSHOT_MAX_REPLAY_MS": "10",
    "GROVE_SNAPSHOT_INTERVAL_MS": "200",
    "GROVE_COMMIT_INTERVAL_MS": "20",
}


def load(place: Installation, first: int) -> Iterator[str]:
    """Send blocks to both partitions, a plain record behind each; yield the ids of all rows."""
    draw, producer = np.random.default_rng(first), place.producer(**{"message.max.bytes": 8 << 20})
    names = tuple(f"x{i}" for i in range(COLUMNS))
    for number in range(first, first + BLOCKS):
        x = draw.random((ROWS, COLUMNS))
        labels = np.where(x[:, 0] + x[:, 1] > 1.0, "a", "b").tolist()
        ids = [f"{number}-{row}" for row in range(ROWS)]
        (block,) = encode_instances(Features.of(names, x), format="arrow", ids=ids, labels=labels)
        assert len(block) >= LARGE_RECORD
        last = f"{number}-plain"
        plain = {
            "id": last,
            "features": dict(zip(names, x[0].tolist(), strict=True)),
            "label": "a",
        }
        for value in (block, orjson.dumps(plain)):
            producer.produce(place.names.instances, value, b"model-%d" % (number % 2), number % 2)
        yield from (*ids, last)
    assert producer.flush(PATIENCE) == 0


def answered(place: Installation) -> Counter[str]:
    """The ids of all answers; a block has its answers in one record."""
    values = [message.value() for message in place.raw(place.names.predictions)]
    return Counter(str(id_) for value in values for id_ in decode_predictions([value]).ids)


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_each_row_has_its_outcome_and_a_restored_model_is_the_one_that_died(
    broker: Broker, tmp_path: Path, guarantee: str
) -> None:
    settings = OFTEN | {"GROVE_PROCESSING_GUARANTEE": guarantee}
    place = Installation(
        broker.bootstrap_servers, "blocks.", 2, tmp_path, settings, module="streamapp worker"
    )
    expected = Counter(load(place, 0))
    with place.worker("w") as worker:
        wait_until(lambda: bool(answered(place)), PATIENCE, lambda: worker.log)
        worker.kill()
        worker.start()
        worker.wait_until_ready()
        expected += Counter(load(place, BLOCKS))
        place.wait_for_lag_0(alive=[worker])
        address = worker.web.removeprefix("http://")
        before = [fetch_model(address, f"model-{number}") for number in range(2)]
        wait_until(lambda: worker.metric("grove_snapshots_total") > 0, PATIENCE, lambda: worker.log)
        worker.kill()
        worker.start()
        worker.wait_until_ready()
        assert [fetch_model(address, f"model-{number}") for number in range(2)] == before
        expected += Counter(load(place, 2 * BLOCKS))
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0, worker.log
        assert "nothing can be committed" not in worker.log
    answered_rows = answered(place)
    assert answered_rows.keys() == expected.keys()
    if guarantee == "exactly_once":
        assert answered_rows == expected
