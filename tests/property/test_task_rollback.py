"""A run that is undone leaves no trace, whatever it did: the next record must not meet a half-done state."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.test_task_cuts import SPECS, assert_same, outcome, story
from tests.tiers import examples
from tests.topology.partition import Partition, Record, config


def state(partition: Partition) -> dict[str, Any]:
    """Return all state of the task, private parts included."""
    task = partition.task
    inner, store, pending = task._state, task.models, task.pending
    columns = ("schema_uid", "known_classes", "width", "n_classes", "open", "frozen")
    slots = sorted(store.keys)
    return {
        "models": {store.keys[slot]: store.cache.model(slot).snapshot() for slot in slots},
        "described": {
            store.keys[slot]: [getattr(store.traits, name)[slot] for name in columns] for slot in slots
        },
        "schemas": {
            store.keys[slot]: (store.traits.schema(slot), store.cache.model(slot).schema) for slot in slots
        },
        "warned": {store.keys[slot] for slot in store.warned},
        "fresh": {store.keys[slot] for slot in slots if store.growth.is_fresh(slot)},
        "incarnations": {store.keys[slot]: store.record(slot).incarnation for slot in slots},
        "specs": list(task.awaited.items()),
        "quota": store.keys.quota.taken,
        "pending": {
            name: (serial, pending._rows[serial - pending._base].tolist())
            for name, serial in pending._index.items()
        },
        "pending counts": (pending.bytes, pending.expired, pending.dropped, pending.waiting),
        "early": {name: (held.label, held.born, held.released) for name, held in inner.early._held.items()},
        "early order": list(inner.early._held),
        "early counts": (inner.early.bytes, inner.early.given_up),
        "time": inner.time.state(),
        "next": dict(task.next),
        "counters": partition.counts,
    }


def runs_of(records: list[Record], every: int) -> list[list[Record]]:
    runs: list[list[Record]] = []
    for number, record in enumerate(records):
        if not runs or runs[-1][0].source != record.source or number % every == 0:
            runs.append([])
        runs[-1].append(record)
    return runs


@settings(max_examples=examples(15))
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(sorted(SPECS)),
    keep=st.sampled_from(["requested", "all"]),
    max_bytes=st.sampled_from([4096, 1 << 20]),
)
def test_an_undone_run_leaves_no_trace(seed: int, kind: str, keep: Any, max_bytes: int) -> None:
    given_ = config(
        SPECS[kind],
        processing_exception_handler="dead-letter",
        pending_keep=keep,
        pending_max_bytes=max_bytes,
        pending_ttl_ms=400,
        models_max_classes=6,
        models_max_count=3,
    )
    undone, plain = Partition(given_), Partition(given_)
    for run in runs_of(story(seed, 250), 9):
        before = state(undone)
        sent = {topic: len(records) for topic, records in undone.sent.items()}
        n_notices = len(undone.notices)
        undone.feed(*run)
        undone.task.rollback()
        assert_same(state(undone), before)
        for topic in undone.sent:
            del undone.sent[topic][sent.get(topic, 0) :]
        del undone.notices[n_notices:]
        undone._offsets[run[0].source] -= len(run)
        undone.feed(*run)
        plain.feed(*run)
    assert_same(outcome(undone), outcome(plain))
