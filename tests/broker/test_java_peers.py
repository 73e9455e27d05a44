"""The peers in Java give the answers of our worker, byte for byte, where its tree is MOA's.

JSON and packed answers have rounded probabilities. Avro has all 64 bits, of which the last ones depend on the
order of a sum: there probabilities may differ by 1e-12, and nothing else may.
"""

from __future__ import annotations

import io
import json
import time
import uuid
from typing import Any

import fastavro
import numpy as np
import pytest

from benchmarks.rig.accuracy import read
from benchmarks.rig.backlog import load
from benchmarks.rig.measure import START_SECONDS, await_answers
from benchmarks.rig.passes import Bench
from benchmarks.rig.registered import registered
from benchmarks.rig.stream import generate, model_keys
from benchmarks.rig.systems import PEERS, WORKER, Options
from benchmarks.rig.visible import Cluster
from topics.clients.admin import create
from topics.codecs.avro.output_schemas import current
from topics.codecs.frames.wire_format import PREFIX_BYTES
from topics.definitions import TopicNames

pytestmark = [pytest.mark.broker, pytest.mark.nightly]

ROWS, PARTITIONS, KEYS = 20_000, 4, 10  # enough for a first split in each model
SYSTEMS = [WORKER, *PEERS["streams"], *PEERS["loop"]]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
@pytest.mark.parametrize(("form", "leaf"), [("json", "nba"), ("packed", "mc"), ("avro", "nba")])
def test_answers_are_the_same(broker, form, leaf, guarantee):
    address = broker.bootstrap_servers
    cluster, names = Cluster(address), TopicNames(f"peers-{uuid.uuid4().hex[:6]}.")
    create({"bootstrap.servers": address}, names, PARTITIONS, 1)
    rows = generate(ROWS, model_keys(KEYS, PARTITIONS))
    answers = {}
    with registered(form) as settings:
        options = Options(address, leaf, guarantee=guarantee, compat="moa", settings=settings)
        bench = Bench(cluster, names, options)
        bench.backlog = load(address, names.instances, rows, form, PARTITIONS)
        for system in SYSTEMS:
            with bench.start(system) as running:
                await_answers(running.child, running.committed, ROWS, time.monotonic() + START_SECONDS)
            answers[system.name] = read(address, running.answers)
    ours = answers.pop(WORKER.name)
    assert [len(partition) for partition in ours] == [len(truth) for truth in bench.backlog.truth]
    for name, theirs in answers.items():
        if form != "avro":
            assert theirs == ours, name
            continue
        (our_rest, our_shares), (rest, shares) = parts_of_avro(ours), parts_of_avro(theirs)
        assert rest == our_rest, name
        np.testing.assert_allclose(shares, our_shares, rtol=0, atol=1e-12, err_msg=name)


def parts_of_avro(answers):
    """Return frames and values of answers without probabilities, and the probabilities of all of them."""
    schema = fastavro.parse_schema(json.loads(current("prediction")))
    rest, shares = [], []
    for answer in (answer for partition in answers for answer in partition):
        body = io.BytesIO(answer[PREFIX_BYTES:])
        value: Any = fastavro.schemaless_reader(body, schema)
        shares += value["probabilities"].values()
        rest.append(
            (answer[:PREFIX_BYTES], value | {"probabilities": [*value["probabilities"]]}, body.read())
        )
    return rest, shares
