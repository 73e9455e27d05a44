"""Budgets keep their promise when labels are late, lost, declined or duplicated, by whatever law."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from core import registry
from core.active.label_account import DECLINED, EXPIRED
from core.model import validate
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from streamapp.worker.task.pending.pending import TICKS
from tests.property.test_task_cuts import assert_same, outcome
from tests.tiers import examples
from tests.topology.partition import NOW, Partition, Record, config, instance, label
from tests.unit.core.builders import learner_for, schema_of

TTL = 320
TICK = TTL // TICKS
RECORDS = 240


@dataclass(frozen=True)
class Law:
    """How labels come: delay in ms by its kind and scale, and how many are lost, declined, told twice."""

    kind: str
    scale: int
    lost: float
    declined: float
    twice: float

    def delay(self, draw: random.Random) -> int:
        if self.kind == "constant":
            return self.scale
        if self.kind == "exponential":
            return int(draw.expovariate(1 / self.scale))
        return int(self.scale * draw.paretovariate(1.1))  # a few come very late


laws = st.builds(
    Law,
    kind=st.sampled_from(["constant", "exponential", "heavy"]),
    scale=st.sampled_from([1, 30, 200, TTL, 2 * TTL]),
    lost=st.sampled_from([0.0, 0.2, 0.9]),
    declined=st.sampled_from([0.0, 0.2, 0.7]),
    twice=st.sampled_from([0.0, 0.5]),
)


def events(law: Law, seed: int) -> list[tuple[int, str, int]]:
    """Return (time, "instance" | "label" | "declined", record), in the order of time.

    A label comes for every record; those that nobody asked for find no instance that waits.
    """
    draw = random.Random(seed)
    in_order, clock = [], 0
    for record in range(RECORDS):
        clock += draw.choice([0, 1, 3, 9, 40])
        in_order.append((clock, "instance", record))
        if draw.random() < law.lost:
            continue
        what = "declined" if draw.random() < law.declined else "label"
        for _ in range(1 + (draw.random() < law.twice)):
            in_order.append((clock + 1 + law.delay(draw), what, record))
    return sorted(in_order, key=lambda event: event[0])


def record_of(event: tuple[int, str, int]) -> Record:
    at, what, number = event
    if what == "instance":
        return instance({"features": {"x": number % 7}, "id": f"i{number}"}, at=at)
    outcome: dict[str, Any] = {"declined": True} if what == "declined" else {"label": "ab"[number % 7 > 3]}
    return label({"id": f"i{number}"} | outcome, at=at)


def played(stream: list[tuple[int, str, int]], spec: dict[str, Any], longest: int) -> Partition:
    """Return a partition after the events, in runs of one source with at most so many records."""
    partition = Partition(config(spec, pending_ttl_ms=TTL))
    run: list[Record] = []
    for event in stream:
        record = record_of(event)
        if run and (run[0].source != record.source or len(run) == longest):
            partition.feed(*run)
            run = []
        run.append(record)
    partition.feed(*run)
    return partition


class Ledger:
    """The requests of a model, the obvious way: each ends once, by a label, a refusal, or the clock."""

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        self.asked = self.answered = self.declined = self.expired = self.t = 0
        self._tick = -1

    @property
    def returned(self) -> int:
        return self.declined + self.expired

    def pass_time(self, at: int) -> None:
        """At a tick those have expired whose time was over before it."""
        tick = (NOW + at) // TICK * TICK - NOW
        if tick != self._tick:
            self._tick = tick
            due = [record for record, born in self.open.items() if born + TTL < tick]
            self.expired += len(due)
            for record in due:
                del self.open[record]

    def hear(self, at: int, what: str, record: int) -> None:
        if record in self.open and at - self.open[record] <= TTL:
            del self.open[record]
            self.answered += what == "label"
            self.declined += what == "declined"


@settings(max_examples=examples(20))
@given(
    law=laws,
    seed=st.integers(0, 10**6),
    query=st.sampled_from(["always", "conf_tree", "rate", "split", "random", "never"]),
    limit=st.sampled_from([0.05, 0.3, 0.8]),
    respend=st.booleans(),
    share=st.sampled_from([0.0, 0.04]),
    longest=st.sampled_from([1, 3, 50]),
)
def test_a_budget_of_counts(
    law: Law, seed: int, query: str, limit: float, respend: bool, share: float, longest: int
) -> None:
    """``asked < B·t + 1``, or with respend ``asked - returned < B·t + 1``, at every record.

    The requests that a task sends are followed by a ledger of the test's own. The strategy that always wants
    the label must get it exactly when the ledger says that the budget is open.
    """
    spec = {
        "learner": learner_for(query),
        "query": query,
        "budget": {"name": "count", "limit": limit, "respend": respend},
        "evaluation": {"share": share, "every": 5},
    }
    stream = events(law, seed)
    partition = played(stream, spec, longest)
    requested = {int(request["instance_id"][1:]) for request in partition.requests}
    ledger = Ledger()
    for at, what, record in stream:
        ledger.pass_time(at)
        if what != "instance":
            ledger.hear(at, what, record)
            continue
        ledger.t += 1
        spent = ledger.asked - (ledger.returned if respend else 0)
        if query == "always" and share == 0.0:
            assert (record in requested) == (spent / ledger.t < limit)
        if record in requested:
            ledger.asked += 1
            ledger.open[record] = at
            assert spent + 1 < limit * ledger.t + 1 + 1e-9
    account = partition.model().evaluation()
    assert (account.asked, account.answered) == (ledger.asked, ledger.answered)
    assert (account.declined, account.expired) == (ledger.declined, ledger.expired)
    assert account.outstanding == len(ledger.open)
    validate.check(partition.model())


@settings(max_examples=examples(15))
@given(
    law=laws,
    seed=st.integers(0, 10**6),
    query=st.sampled_from(registry.names("queries")),
    name=st.sampled_from(registry.names("budgets")),
    longest=st.sampled_from([1, 2, 17]),
)
def test_when_an_expiry_is_noticed_changes_nothing(
    law: Law, seed: int, query: str, name: str, longest: int
) -> None:
    """Other runs, other moments at which the task looks at its clock: the same requests and models."""
    spec = {
        "learner": learner_for(query),
        "query": query,
        "budget": {"name": name, "limit": 0.3, "respend": True},
        "evaluation": {"share": 0.05, "every": 4},
    }
    stream = events(law, seed)
    assert_same(outcome(played(stream, spec, longest)), outcome(played(stream, spec, RECORDS)))


@settings(max_examples=examples(15))
@given(
    seed=st.integers(0, 10**6),
    query=st.sampled_from(registry.names("queries")),
    limit=st.sampled_from([0.02, 0.25, 1.0]),
    share=st.sampled_from([0.0, 0.02]),
    respend=st.booleans(),
    closed=st.floats(0, 1),
    batch=st.sampled_from([1, 13, 100]),
)
def test_the_count_budget_of_core(
    seed: int, query: str, limit: float, share: float, respend: bool, closed: float, batch: int
) -> None:
    """Requests end in any number, at any time, in core alone; of all strategies none overdraws."""
    draw = np.random.default_rng(seed)
    spec = {
        "learner": learner_for(query),
        "query": query,
        "budget": {"name": "count", "limit": limit, "respend": respend},
        "evaluation": {"share": share, "every": 0},
        "seed": seed,
    }
    table = ModelTable()
    model = table.model(table.add(Model.create(Spec.parse(spec), schema_of(None))))
    t = 0
    for _ in range(400 // batch + 1):
        before = model.summary()
        returned = before.declined + before.expired if respend else 0
        rows = np.zeros(batch, dtype=np.int64)
        asked = table.answer(rows, np.zeros((batch, 1)), rows.astype(np.int32) - 1, np.ones(batch)).asked
        spent = before.requests - returned + np.cumsum(asked)
        t += batch
        times = np.arange(t - batch + 1, t + 1)
        assert (spent[asked] < limit * times[asked] + 1 + 1e-9).all()
        summary = model.summary()
        assert summary.requests == before.requests + asked.sum()
        ending = draw.binomial(summary.outstanding, closed)
        model.close(DECLINED, int(ending) // 2)
        model.close(EXPIRED, int(ending) - int(ending) // 2)
        validate.check(model)
