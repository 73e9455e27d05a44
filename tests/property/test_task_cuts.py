"""What a task does is a function of the sequence of its records, not of the runs they come in."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.worker.task.counters import MEANING
from streamapp.worker.task.sources import SourceName
from tests.tiers import examples
from tests.topology.partition import QUICK, Partition, Record, config
from topics.codecs import encode_instances
from topics.columns.records import Features

TTL = 400
SPECS: dict[str, dict[str, Any]] = {
    "asks-all": {"query": "always", "budget": {"name": "count", "limit": 1.0}},
    "asks-some": {"query": "variable_uncertainty", "budget": {"name": "count", "limit": 0.5}, "drift": "ddm"},
    "asks-again": {
        "query": "split_conf_tree",
        "budget": {"name": "count", "limit": 0.4, "respend": True},
        "evaluation": {"window": 20, "every": 3, "share": 0.1},
        "drift": "ddm",
    },
    "asks-in-a-window": {
        "query": "randomised_uncertainty",
        "budget": {"name": "window", "limit": 0.3, "window": 20, "respend": True},
        "evaluation": {"window": 20, "every": 5},
    },
    "asks-none": {"query": "never", "drift": "ddm", "evaluation": {"window": 20, "every": 7}},
    "no-tree": {
        "learner": "naive-bayes",
        "query": "variable_uncertainty",
        "budget": {"name": "count", "limit": 0.5},
        "evaluation": {"window": 20, "every": 5},
        "drift": {"name": "ddm", "warm_up": 10, "warning": 1.0, "drift": 1.5},
    },
    "counts-classes": {
        "learner": "majority-class",
        "query": "conf_tree",
        "budget": {"name": "count", "limit": 0.6},
        "drift": {"name": "ddm", "reaction": "reset"},
    },
    "repeats-labels": {"learner": "no-change", "query": "rate", "budget": {"name": "count", "limit": 0.5}},
    "committee": {
        "learner": {"name": "arf", "members": 3, "uncertainty": "votes", "member": QUICK},
        "query": "variable_uncertainty",
        "budget": {"name": "count", "limit": 0.5},
        "evaluation": {"window": 20, "every": 5},
        "drift": "ddm",
    },
    "adapts": {
        "learner": QUICK | {"name": "hat", "drift_confidence": 0.5, "switch_records": 20},
        "query": "variable_uncertainty",
        "budget": {"name": "count", "limit": 0.7},
        "evaluation": {"window": 20, "every": 5},
        "drift": "ddm",
    },
    "boosts": {
        "learner": {"name": "sgbt", "members": 3, "bins": 8, "learning_rate": 0.1},
        "query": "variable_uncertainty",
        "budget": {"name": "count", "limit": 0.7},
        "evaluation": {"window": 20, "every": 5},
        "drift": "ddm",
    },
    "stops-growing": {
        "learner": QUICK | {"max_leaves": 2},
        "query": "always",
        "budget": {"name": "count", "limit": 1.0},
        "evaluation": {"window": 20, "every": 7},
    },
}


SOURCES: tuple[SourceName, ...] = ("instances", "labels", "controls")


def story(seed: int, n: int) -> list[Record]:
    """Return a sequence of records with everything that can happen to a partition, in an order by chance."""
    draw = random.Random(seed)
    records: list[Record] = []
    clock = 0
    known: list[tuple[str, str]] = []
    style = draw.choice(["plain", "growing", "nominal", "mixed"])
    wrong_at_first = 10**10 * (seed % 3 == 0)  # a device that thinks it is another year
    while len(records) < n:
        clock += draw.choice([0, 0, 1, 5, 40])
        at = clock - draw.choice([0, 0, 0, 30]) + (draw.random() < 0.01) * 10**10
        at += 0 if records else wrong_at_first
        source = draw.choices(SOURCES, (12, 6, 0.4))[0]
        for _ in range(draw.randrange(1, 12) if source != "controls" else 1):
            key = draw.choice("abcd")
            record = {"instances": _instance, "labels": _label, "controls": _control}[source]
            value: bytes | None = record(draw, style, key, known, len(records))
            if source == "instances" and draw.random() < 0.05:
                value = _block(draw, key, known, len(records))
            if draw.random() < 0.02:
                value = draw.choice([b"{not json", None, b'{"id": 5}', b"[]"])
            records.append(Record(source, key.encode(), value, at))
    return records


def _features(draw: random.Random, style: str, n: int) -> tuple[Any, bool]:
    x = [round(draw.uniform(0, 10), 2) for _ in range(3)]
    positive = (x[0] > 5) ^ (n > 250)
    named: dict[str, Any] = {"x": x[0], "y": x[1]}
    if style in ("nominal", "mixed"):
        named["colour"] = (
            draw.choice(["red", "green", "blue", 3, None]) if positive else draw.choice(["red", "x", 2.5])
        )
    if style in ("growing", "mixed") and draw.random() < 0.3:
        named[draw.choice(["late", "later", "latest"])] = draw.choice([x[2], "word", None])
    if draw.random() < 0.1:
        named = dict(reversed(named.items()))
    if draw.random() < 0.02:
        named["x"] = "not a number"
    if draw.random() < 0.03:
        return x[: draw.randrange(1, 4)], positive
    if draw.random() < (0.3 if n < 20 else 0.01):
        return {}, positive  # makes no model
    return named, positive


def _instance(draw: random.Random, style: str, key: str, known: list[tuple[str, str]], n: int) -> bytes:
    features, positive = _features(draw, style, n)
    document: dict[str, Any] = {"features": features}
    if draw.random() < 0.8:
        name = f"i{draw.randrange(60)}" if draw.random() < 0.2 else f"n{n}"
        document["id"] = name
        known.append((key, name))
    if draw.random() < 0.35:
        document["label"] = (
            draw.choice(["yes", "no"]) if draw.random() < 0.1 else ("yes" if positive else "no")
        )
        if draw.random() < 0.05:
            document["label"] = f"class {draw.randrange(9)}"
    if draw.random() < 0.2:
        document["weight"] = draw.choice([0.5, 2])
    return orjson.dumps(document)


def _block(draw: random.Random, key: str, known: list[tuple[str, str]], n: int) -> bytes:
    """Return an Arrow block of a few rows, or their packed first row."""
    rows = draw.randrange(1, 6)
    x = np.array([[draw.uniform(0, 10), draw.uniform(0, 10)] for _ in range(rows)])
    if draw.random() < 0.2:
        return encode_instances(Features.of(None, x[:1]), format="packed")[0]
    labels = [draw.choice(["yes", "no", None, f"class {draw.randrange(9)}"]) for _ in range(rows)]
    ids = [f"b{n}-{row}" for row in range(rows)]
    known += [(key, name) for name in ids]
    weights = np.array([draw.choice([1.0, 1.0, 2.0]) for _ in range(rows)])
    names: tuple[str, ...] = draw.choice([("x", "y"), ("y", "x"), ("x", "late")])
    if n % 3 == 0:  # feature after feature
        names = ("x", "late", "later", "latest")
        x = np.hstack((x, x))
        x[np.random.default_rng(n).random(x.shape) < 0.5] = np.nan
    features = Features.of(names, x)
    return encode_instances(features, format="arrow", ids=ids, labels=labels, weights=weights)[0]


def _label(draw: random.Random, style: str, key: str, known: list[tuple[str, str]], n: int) -> bytes:
    pick = draw.random()
    if known and pick < 0.7:
        name = draw.choice(known[-draw.choice([10, 40, 200]) :])[1]
    elif pick < 0.85:
        name = f"n{n + draw.randrange(40)}"  # an instance that may yet come
    else:
        name = f"i{draw.randrange(60)}"
    document: dict[str, Any] = {"id": name}
    if draw.random() < 0.1:
        document["declined"] = True
    else:
        document["label"] = draw.choice(["yes", "no", "yes", "no", f"class {draw.randrange(9)}"])
    if draw.random() < 0.15:
        document["features"] = _features(draw, style, n)[0]
    return orjson.dumps(document)


def _control(draw: random.Random, style: str, key: str, known: list[tuple[str, str]], n: int) -> bytes:
    command = draw.choice(["freeze", "thaw", "reset", "delete", "create", "configure", "import", "nonsense"])
    body: dict[str, Any] = {"command": "freeze" if command == "thaw" else command}
    if command == "thaw":
        body["frozen"] = False
    if command == "create" and draw.random() < 0.5:
        body["schema"] = {"attributes": [{"name": "x"}, {"name": "y"}], "classes": ["no", "yes"]}
    if command == "configure":
        body["spec"] = {"budget": {"limit": draw.choice([0.2, 0.9])}}
    return orjson.dumps(body)


def played(records: list[Record], cuts: set[int], **settings_: Any) -> Partition:
    """Return a partition after the story, cut into runs where the source changes and at `cuts`."""
    partition = Partition(config(**settings_))
    run: list[Record] = []
    for number, record in enumerate(records):
        if run and (run[0].source != record.source or number in cuts):
            partition.feed(*run)
            run = []
        run.append(record)
    partition.feed(*run)
    return partition


def outcome(partition: Partition) -> dict[str, Any]:
    """Return everything that must not depend on the cuts."""
    store, task = partition.task.models, partition.task
    return {
        "sent": dict(partition.sent),
        "notices": list(partition.notices),
        "counts": partition.counts,
        "models": {store.keys[slot]: store.cache.model(slot).snapshot() for slot in sorted(store.keys)},
        "frozen": {store.keys[slot] for slot in store.keys if store.traits.frozen[slot]},
        "awaited": dict(task.awaited),
        "pending": (task.pending.bytes, task.pending.waiting, len(task.pending)),
        "early": task.early_labels,
        "clock": task.clock,
        "next": dict(task.next),
    }


def assert_same(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    for part, value in expected.items():
        if part == "sent":
            assert actual["sent"].keys() == value.keys()
            for topic, records in value.items():
                for number, (a, b) in enumerate(zip(actual["sent"][topic], records, strict=False)):
                    assert a == b, f"{topic} record {number}"
                assert len(actual["sent"][topic]) == len(records), topic
        else:
            assert actual[part] == value, part


@settings(max_examples=examples(15))
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(sorted(SPECS)),
    keep=st.sampled_from(["requested", "all"]),
    max_bytes=st.sampled_from([4096, 16_384, 1 << 20]),
    every=st.sampled_from([1, 2, 7, 50]),
)
def test_cutting_the_records_into_other_runs_changes_nothing(
    seed: int, kind: str, keep: str, max_bytes: int, every: int
) -> None:
    records = story(seed, 400)
    limits = {
        "pending_keep": keep,
        "pending_max_bytes": max_bytes,
        "pending_ttl_ms": TTL,
        "models_max_classes": 6,
        "models_max_count": 3 + seed % 2,
    }
    whole = played(records, set(), spec=SPECS[kind], **limits)
    cut = played(records, set(range(0, len(records), every)), spec=SPECS[kind], **limits)
    assert_same(outcome(cut), outcome(whole))


@pytest.mark.parametrize("kind", sorted(SPECS))
def test_the_same_records_lead_to_the_same_effects_again(kind: str) -> None:
    records = story(7, 600)
    first = played(records, {100, 300}, spec=SPECS[kind], pending_ttl_ms=TTL)
    again = played(records, {100, 300}, spec=SPECS[kind], pending_ttl_ms=TTL)
    assert_same(outcome(again), outcome(first))


def test_the_stories_tell_of_everything() -> None:
    """The property would be worth little if half of what can happen never did."""
    # What is too large is seen when it is encoded, and added to the counts of the run.
    # Imports are records in a row that belong together: their cuts are in tests/topology/test_import.py.
    elsewhere = {"features.unknown-values", "outputs.too-large", "models.imported", "imports.given-up"}
    # Records whose features are bought have stories of their own: tests/property/acquiring_story.py.
    missing = {name for name in MEANING if not name.startswith(("episodes.", "feature_values."))}
    # Nearly everything happens to who asks for all labels: the others are asked for the rest.
    stories = sorted(itertools.product(range(40), SPECS), key=lambda story: story[1] != "asks-all")
    for seed, kind in stories:
        records = story(seed, 400)
        partition = played(records, set(), spec=SPECS[kind], pending_ttl_ms=TTL, models_max_classes=6)
        missing -= set(partition.counts)
        if missing <= elsewhere:
            return
    assert missing <= elsewhere
