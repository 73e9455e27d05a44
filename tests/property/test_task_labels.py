"""Plain labels are dealt with together: what they and those between them lead to is as if one by one."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.task import labels
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
            records += [each._replace(at=clock) for each in again[draw.randrange(len(again) or 1) :]]
        if draw.random() < 0.1:
            command = orjson.dumps({"command": "freeze", "frozen": draw.random() < 0.5})
            records.append(Record("controls", b"a", command, clock))
    return records


@settings(max_examples=examples(30))
@given(
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.0, 0.02, 0.2]),
    keep=st.sampled_from(["requested", "all"]),
    max_bytes=st.sampled_from([16_384, 1 << 20]),
    few=st.sampled_from([1, 2, 8]),
)
def test_labels_dealt_with_together_lead_to_what_they_do_one_by_one(
    seed: int, share: float, keep: str, max_bytes: int, few: int
) -> None:
    records = bursts(seed, 12, share)
    limits = {
        "pending_keep": keep,
        "pending_max_bytes": max_bytes,
        "pending_ttl_ms": TTL,
        "models_max_classes": 6,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "FEW", few)
        together = played(records, set(), spec=DRIFTING, **limits)
        patch.setattr(labels, "FEW", len(records))
        one_by_one = played(records, set(), spec=DRIFTING, **limits)
    assert_same(outcome(together), outcome(one_by_one))


def test_the_bursts_have_both_plain_and_odd_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    together, single, repeated = 0, 0, 0
    accept, one = labels.LabelsRun._accept_plain, labels.LabelsRun._label
    plain = labels.LabelsRun._plain

    def counted_accept(run: Any, row: Any, *rest: Any) -> None:
        nonlocal together
        together += len(row)
        accept(run, row, *rest)

    def counted_one(run: Any, *rest: Any) -> str:
        nonlocal single
        single += 1
        return one(run, *rest)

    def counted_plain(run: Any) -> Any:
        nonlocal repeated
        found = plain(run)
        repeated += int(found[2].sum())
        return found

    monkeypatch.setattr(labels.LabelsRun, "_plain", counted_plain)
    monkeypatch.setattr(labels.LabelsRun, "_accept_plain", counted_accept)
    monkeypatch.setattr(labels.LabelsRun, "_label", counted_one)
    counts = played(bursts(3, 60, 0.05), set(), spec=DRIFTING, pending_ttl_ms=TTL).counts
    assert together > 200
    assert single > 50
    assert repeated > 50
    for outcome_ in ("learned", "late", "duplicate", "early", "declined", "dead-letter"):
        assert counts[f"labels.{outcome_}"], outcome_
