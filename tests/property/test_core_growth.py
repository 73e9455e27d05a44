"""The buffer of a model under random growth: whatever comes when, all invariants hold and nothing is lost."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core import registry
from core.model import validate
from core.model.model import Model
from core.model_table import ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from core.tree import views
from tests.naive.rows import OBSERVERS
from tests.tiers import examples

SPEC = {
    "learner": {"name": "h-tree", "grace_period": 15, "delta": 0.2, "tau": 0.4},
    "drift": {"name": "ddm", "warm_up": 10, "warning": 1.0, "drift": 2.5},
    "evaluation": {"window": 12, "every": 0},
}


class Growth(RuleBasedStateMachine):
    """Records, new classes, values and features, drifts, snapshots in any order; beside it what must stay."""

    @initialize(
        seed=st.integers(0, 1000),
        compat=st.sampled_from([None, "moa", "imac"]),
        schedule=st.sampled_from(registry.names("schedules")),
        observer=st.sampled_from(OBSERVERS),
    )
    def begin(self, seed, compat, schedule, observer):
        self.draw = np.random.default_rng(seed)
        own = {"check_period": 9} if schedule == "imac" else {}
        learner = SPEC["learner"] | observer | own | {"compat": compat, "schedule": schedule}
        spec = Spec.parse(SPEC | {"learner": learner})
        schema = Schema.infer(["a", "b"], ["numeric", "nominal"])
        self.table = ModelTable()
        self.table.add(Model.create(spec, schema.with_class("0").with_values([(1, "0")])))
        self.learned = 0

    @property
    def model(self):
        return self.table.model(0)

    def adopt(self, schema):
        before = self.masses()
        self.model.adopt(schema)
        self.table.refresh(0)
        after = self.masses()
        assert all((new[:, : old.shape[1]] == old).all() for old, new in zip(before, after, strict=True))
        assert all((new[:, old.shape[1] :] == 0.0).all() for old, new in zip(before, after, strict=True))

    def masses(self):
        """Return class masses and leaf records' class weights of all trees."""
        arrays = []
        for t in self.model.block_places:
            tree = views.tree_view(self.model.plan, self.model.ints, t)
            arrays += [tree.masses.copy(), tree.seen.copy()]
        return arrays

    @rule(n=st.integers(1, 40), wrong=st.sampled_from([0.0, 0.1, 0.9]))
    def learn(self, n, wrong):
        schema, draw = self.model.schema, self.draw
        columns = [
            draw.normal(size=n) if a.kind == "numeric" else draw.integers(-1, len(a.values), n)
            for a in schema.attributes
        ]
        x = np.column_stack(columns).astype(np.float64)
        label = ((x[:, 0] > 0).astype(np.int32) + (x[:, 1] > 0)) % schema.n_classes
        other = (label + 1) % schema.n_classes
        predicted = np.where(draw.random(n) < wrong, other, label).astype(np.int32)
        zeros = np.zeros(n, dtype=np.int64)
        self.table.learn(zeros, x, label.astype(np.int32), np.ones(n), predicted, np.zeros(n, dtype=np.bool_))
        self.learned += n

    @rule()
    def new_class(self):
        schema = self.model.schema
        if schema.n_classes < 9:
            self.adopt(schema.with_class(str(schema.n_classes)))

    @rule(n=st.integers(1, 5))
    def new_values(self, n):
        schema = self.model.schema
        for _ in range(n):
            schema = schema.with_values([(1, str(len(schema.attributes[1].values)))])
        self.adopt(schema)

    @rule(kind=st.sampled_from(["numeric", "nominal"]))
    def new_feature(self, kind):
        schema = self.model.schema
        if not self.model.takes_attributes or schema.n_attributes >= 6:
            return
        schema = schema.with_attributes([Attribute(f"x{schema.n_attributes}", kind, open=kind == "nominal")])
        if kind == "nominal":
            schema = schema.with_values([(schema.n_attributes - 1, "0")])
        self.adopt(schema)

    @rule()
    def restart(self):
        data = self.model.snapshot()
        restored = Model.restore(data)
        assert restored.snapshot() == data
        self.table.remove(0)
        assert self.table.add(restored) == 0

    @invariant()
    def all_is_well(self):
        if hasattr(self, "table"):
            validate.check(self.model)
            assert self.model.summary().labels == self.learned


Growth.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=30)
TestGrowth = Growth.TestCase
