"""Runs of plain instances are answered in a way of their own: they lead to what all others do."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.worker.task.instances.family_run import FamilyRun
from streamapp.worker.task.models import families
from tests.property.test_task_cuts import SPECS, TTL, assert_same, outcome, played
from tests.tiers import examples
from tests.topology.partition import Record


def steady(seed: int, n: int, share: float) -> list[Record]:
    """Return a steady stream of instances, labelled or not, labels among them; `share` of all is odd."""
    draw = random.Random(seed)
    records: list[Record] = []
    clock = 0
    names = [f"n{number}" for number in range(n)]
    classes = ["yes", "no", "perhaps"][: draw.choice([2, 2, 3])]
    while len(records) < n:
        clock += draw.choice([0, 1, 5])
        if draw.random() < 0.2:
            for _ in range(draw.randrange(1, 8)):
                document: dict[str, Any] = {"id": draw.choice(names), "label": draw.choice(classes)}
                records.append(Record("labels", draw.choice("abc").encode(), orjson.dumps(document), clock))
        if draw.random() < share:
            records.append(_command(draw, clock))
        for _ in range(draw.randrange(1, 30)):
            x, y = round(draw.uniform(0, 10), 2), round(draw.uniform(0, 10), 2)
            document = {"features": {"x": x, "y": y}}
            if draw.random() < 0.7:
                document["label"] = classes[int(x + y) % len(classes)]
            if draw.random() < 0.7:
                document["id"] = names[min(len(records), n - 1)]
            if draw.random() < 0.1:
                document["weight"] = 2
            if draw.random() < share:
                document |= draw.choice(_ODD)
            key = draw.choice("abc")
            records.append(Record("instances", key.encode(), orjson.dumps(document), clock))
    return records


_ODD: list[dict[str, Any]] = [
    {"label": "another"},
    {"features": {"y": 1.0, "x": 2.0}},
    {"features": {"x": 1.0}},
    {"features": {"x": 1.0, "y": 2.0, "z": 3.0}},
    {"features": {"x": "word", "y": 2.0}},
    {"features": [1.0, 2.0]},
    {"features": None},
    {"id": "n7"},
    {"weight": -1},
]


def _command(draw: random.Random, clock: int) -> Record:
    command = draw.choice(
        [
            {"command": "freeze", "frozen": draw.random() < 0.5},
            {"command": "reset"},
            {"command": "delete"},
            {"command": "configure", "spec": {"budget": {"limit": 0.3}}},
            {
                "command": "create",
                "schema": {"attributes": [{"name": "x"}, {"name": "y"}], "classes": ["no", "yes", "perhaps"]},
            },
        ]
    )
    return Record("controls", draw.choice("abc").encode(), orjson.dumps(command), clock)


@settings(max_examples=examples(30))
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(sorted(SPECS)),
    share=st.sampled_from([0.0, 0.01, 0.1]),
    keep=st.sampled_from(["requested", "all"]),
    handler=st.sampled_from(["stop-partition", "dead-letter"]),
    cells=st.sampled_from([4, 1 << 18]),
)
def test_plain_runs_lead_to_what_all_others_do(
    seed: int, kind: str, share: float, keep: str, handler: str, cells: int
) -> None:
    records = steady(seed, 250, share)
    cuts = {*range(0, len(records), 1 + seed % 20)}
    given_ = {"spec": SPECS[kind], "pending_keep": keep, "pending_ttl_ms": TTL}
    given_ |= {"processing_exception_handler": handler}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "MAX_CELLS", cells)
        plain = played(records, cuts, **given_)
        patch.setattr(FamilyRun, "of", lambda *_: None)
        others = played(records, cuts, **given_)
    assert_same(outcome(plain), outcome(others))
    assert plain.task.digest() == others.task.digest()


def test_most_of_a_steady_stream_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, moved, find = 0, 0, FamilyRun.of

    def counted(*arguments: Any) -> FamilyRun | None:
        nonlocal rows, moved
        run = find(*arguments)
        if run is not None:
            rows += len(run.batch)
            moved += run._surveyed.kind is None or run._surveyed.kind.moved
        return run

    monkeypatch.setattr(FamilyRun, "of", counted)
    records = [record for seed in range(4) for record in steady(seed, 300, 0.01)]
    partition = played(records, {*range(0, len(records), 9)}, spec=SPECS["asks-some"], pending_ttl_ms=TTL)
    assert rows > 0.5 * partition.counts["instances.answered"]
    assert moved > 0
