"""The peers in Java give the answers of our worker, byte for byte, where its tree is MOA's."""

from __future__ import annotations

import time
import uuid

import pytest

from benchmarks.rig.accuracy import read
from benchmarks.rig.backlog import load
from benchmarks.rig.measure import START_SECONDS, await_answers
from benchmarks.rig.passes import Bench
from benchmarks.rig.stream import generate, model_keys
from benchmarks.rig.systems import PEERS, WORKER, Options
from benchmarks.rig.visible import Cluster
from topics.clients.admin import create
from topics.definitions import TopicNames

pytestmark = [pytest.mark.broker, pytest.mark.nightly]

ROWS, PARTITIONS, KEYS = 20_000, 4, 10  # enough for a first split in each model
SYSTEMS = [WORKER, *PEERS["streams"], *PEERS["loop"]]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
@pytest.mark.parametrize(("form", "leaf"), [("json", "nba"), ("packed", "mc")])
def test_answers_are_the_same(broker, form, leaf, guarantee):
    address = broker.bootstrap_servers
    cluster, names = Cluster(address), TopicNames(f"peers-{uuid.uuid4().hex[:6]}.")
    create({"bootstrap.servers": address}, names, PARTITIONS, 1)
    bench = Bench(cluster, names, Options(address, leaf, guarantee=guarantee, compat="moa"))
    rows = generate(ROWS, model_keys(KEYS, PARTITIONS))
    bench.backlog = load(address, names.instances, rows, form, PARTITIONS)
    answers = {}
    for system in SYSTEMS:
        with bench.start(system) as running:
            await_answers(running.child, running.committed, ROWS, time.monotonic() + START_SECONDS)
        answers[system.name] = read(address, running.answers)
    ours = answers.pop(WORKER.name)
    assert [len(partition) for partition in ours] == [len(truth) for truth in bench.backlog.truth]
    for name, theirs in answers.items():
        assert theirs == ours, name
