"""Plain labels are dealt with together: what they and those between them lead to is as if one by one."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.worker.task import labels
from tests.property.test_task_cuts import TTL, assert_same, outcome, played
from tests.tiers import examples
from tests.topology.partition import ALWAYS, Record

DRIFTING = ALWAYS | {"drift": "ddm"}


def bursts(seed: int, rounds: int, share: float) -> list[Record]:
    """Return bursts of instances, each followed by a burst of labels; `share` of these are odd somehow."""
    draw = random.Random(seed)
    records: list[Record] = []
    waiting: list[tuple[str, str, float]] = []  # key, id, feature
    clock = 0
    for number in range(rounds):
        for place in range(draw.randrange(10, 50)):
            clock += draw.choice([0, 0, 1])
            key, name, x = draw.choice("ab"), f"n{number}-{place}", round(draw.uniform(0, 10), 2)
            value = orjson.dumps({"id": name, "features": {"x": x, "y": draw.random()}})
            records.append(Record("instances", key.encode(), value, clock))
            waiting.append((key, name, x))
        if draw.random() < 0.3:  # labels of what comes next, or of what never comes
            early = [f"n{number + 1}-{draw.randrange(60)}" for _ in range(draw.randrange(10, 40))]
            records += [_label(draw, draw.choice("aabbz"), name, clock) for name in early]
        draw.shuffle(waiting)
        burst = [waiting.pop() for _ in range(min(len(waiting), draw.randrange(10, 50)))]
        clock += draw.choice([0, 10, TTL, 2 * TTL]) if draw.random() < 0.3 else 1
        for key, name, x in burst:
            document: dict[str, Any] = {"id": name, "label": "hi" if x > 5 else "lo"}
            if draw.random() < share:
                document |= draw.choice(
                    [
                        {"id": f"n{number}-{draw.randrange(50)}"},  # a second one, or one too many
                        {"id": f"n{number + 1}-0"},  # early
                        {"label": None, "declined": True},
                        {"label": f"class {draw.randrange(9)}"},
                        {"id": f"own{len(records)}", "features": {"x": x, "y": 1.0}},
                        {"features": {"x": x, "y": 1.0}},
                        {"features": {"x": "a string", "y": 1.0}},
                        {"id": f"n{number}-{draw.randrange(50)}", "features": {"x": "a string"}},
                    ]
                )
            records.append(Record("labels", key.encode(), orjson.dumps(document), clock))
        if draw.random() < 0.3:  # sent again, all of them or the last ones, sooner or later
            clock += draw.choice([0, 1, TTL, 2 * TTL])
            again = records[len(records) - len(burst) :]
            records += [record._replace(at=clock) for record in again[draw.randrange(len(again) or 1) :]]
        if draw.random() < 0.1:
            command = orjson.dumps({"command": "freeze", "frozen": draw.random() < 0.5})
            records.append(Record("controls", b"a", command, clock))
    return records


def _label(draw: random.Random, key: str, name: str, clock: int) -> Record:
    document: dict[str, Any] = {"id": name, "label": draw.choice(["hi", "lo", "lo", "other"])}
    if draw.random() < 0.1:
        document["weight"] = 2
    headers = (("who", b"me"),) if draw.random() < 0.2 else ()
    return Record("labels", key.encode(), orjson.dumps(document), clock, headers)


CREATED = [
    Record("controls", b"a", orjson.dumps({"command": "create"})),
    Record(
        "controls",
        b"b",
        orjson.dumps({"command": "create", "schema": {"attributes": [{"name": "x"}, {"name": "y"}]}}),
    ),
]
"""Of the keys that instances have; the model of the first one waits for its first instance."""


@settings(max_examples=examples(30))
@given(
    seed=st.integers(0, 10**6),
    auto=st.booleans(),
    share=st.sampled_from([0.0, 0.02, 0.2]),
    keep=st.sampled_from(["requested", "all"]),
    max_bytes=st.sampled_from([16_384, 1 << 20]),
    few=st.sampled_from([1, 2, 8]),
)
def test_labels_dealt_with_together_lead_to_what_they_do_one_by_one(
    seed: int, auto: bool, share: float, keep: str, max_bytes: int, few: int
) -> None:
    records = [*([] if auto else CREATED), *bursts(seed, 12, share)]
    limits = {
        "pending_keep": keep,
        "pending_max_bytes": max_bytes,
        "pending_ttl_ms": TTL,
        "models_max_classes": 6,
        "models_auto_create": auto,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "FEW", few)
        together = played(records, set(), spec=DRIFTING, **limits)
        patch.setattr(labels, "FEW", len(records))
        one_by_one = played(records, set(), spec=DRIFTING, **limits)
    assert_same(outcome(together), outcome(one_by_one))
    assert together.task.digest() == one_by_one.task.digest()


def test_the_bursts_have_labels_of_every_sort_and_special_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    together, single = Counter[int](), 0
    give, one = labels.LabelsRun._give_many, labels.LabelsRun._label

    def counted_many(run: Any, sorts: Any, start: int, stop: int) -> None:
        together.update(sorts.sort[start:stop].tolist())
        give(run, sorts, start, stop)

    def counted_one(run: Any, *rest: Any) -> str:
        nonlocal single
        single += 1
        return one(run, *rest)

    monkeypatch.setattr(labels.LabelsRun, "_give_many", counted_many)
    monkeypatch.setattr(labels.LabelsRun, "_label", counted_one)
    counts = played(bursts(3, 60, 0.05), set(), spec=DRIFTING, pending_ttl_ms=TTL).counts
    assert min(together[sort] for sort in (labels.PLAIN, labels.REPEATED, labels.LATE, labels.EARLY)) > 50
    assert single > 50
    for outcome_ in ("learned", "late", "duplicate", "early", "declined", "dead-letter"):
        assert counts[f"labels.{outcome_}"], outcome_
