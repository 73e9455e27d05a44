"""Model: a spec, a schema, and one buffer of words that is its whole state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from core import arena, evaluation, jit, portable, prediction, snapshot
from core.account import Account, close
from core.errors import SchemaError, SpecError
from core.evaluation import Evaluation
from core.features import Schema
from core.plan import Plan
from core.prediction import Prediction, Record
from core.spec import Spec
from core.tree import layout as at
from core.tree.branches import Branch, end_of, path_to
from core.tree.layout import Floats, Ints


@dataclass(frozen=True, slots=True)
class Summary:
    """The size of a model and what it has been through; the counts of the tree that answers."""

    leaves: int
    nodes: int
    depth: int
    splits: int
    attempts: int
    labels: int
    """Labels learned by the model."""
    records: int
    """Records answered."""
    version: int
    """Labels learned when the next record is answered."""
    requests: int
    """Labels asked for; so many of them were"""
    answered: int
    """learned,"""
    declined: int
    """refused,"""
    expired: int
    """not learned in time,"""
    outstanding: int
    """and are still awaited."""
    refused: int
    """Records that the query strategy was not asked about, because the budget was closed."""
    rebuilds: int
    """Trees replaced after a drift."""
    growth_stopped: bool
    """The tree reached its leaf cap."""


class Scale(NamedTuple):
    """What a scrape over very many models asks of each: words of the header, no walk through the tree."""

    nodes: int
    """Of the tree that answers, places of absent branches included."""
    nbytes: int
    records: int
    """Records answered."""
    requests: int
    """Labels asked for."""


class Model:
    """State of one model; kernels reach it through a ModelTable."""

    __slots__ = ("address", "floats", "ints", "plan")

    def __init__(self, plan: Plan, ints: Ints) -> None:
        """Take a plan and a buffer that was laid out for it."""
        self.plan = plan
        self.use(ints)

    @staticmethod
    def create(spec: Spec, schema: Schema) -> Model:
        """Return a model that has seen nothing."""
        plan = Plan.of(spec, schema)
        plan.check_room()
        return Model(plan, arena.new_model(plan))

    def use(self, ints: Ints) -> None:
        """Take a buffer as the model's state."""
        self.ints: Ints = ints
        self.floats: Floats = ints.view(np.float64)
        self.address: int = ints.ctypes.data
        jit.register(ints)

    @property
    def spec(self) -> Spec:
        """What the model was built from."""
        return self.plan.spec

    @property
    def schema(self) -> Schema:
        """What its records look like."""
        return self.plan.schema

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.ints.nbytes

    def summary(self) -> Summary:
        """Return the model's size and counters."""
        ints = self.ints
        t = int(ints[at.MODEL_MAIN])
        account = Account.of(ints)
        return Summary(
            leaves=int(ints[t + at.TREE_LEAVES]),
            nodes=arena.live_nodes(self.plan, ints, t),
            depth=int(ints[t + at.TREE_DEPTH]),
            splits=int(ints[t + at.TREE_SPLITS]),
            attempts=int(ints[t + at.TREE_ATTEMPTS]),
            labels=int(ints[at.MODEL_LABELS]),
            records=int(ints[at.MODEL_RECORDS]),
            version=int(ints[at.MODEL_LABELS]),
            requests=account.asked,
            answered=account.answered,
            declined=account.declined,
            expired=account.expired,
            outstanding=account.outstanding,
            refused=account.refused,
            rebuilds=int(ints[at.MODEL_REBUILDS]),
            growth_stopped=bool(ints[t + at.TREE_STOPPED]),
        )

    def scale(self) -> Scale:
        """Return how large the model is and what it has asked for; costs a hundredth of ``summary``."""
        ints = self.ints
        return Scale(
            nodes=int(ints[int(ints[at.MODEL_MAIN]) + at.TREE_NODES]),
            nbytes=ints.nbytes,
            records=int(ints[at.MODEL_RECORDS]),
            requests=int(ints[at.MODEL_REQUESTS]),
        )

    def evaluation(self) -> Evaluation:
        """Return the prequential evaluation so far."""
        return evaluation.read(self.plan, self.ints)

    def explain(self, x: Floats) -> tuple[Branch, ...]:
        """Return the branches that lead a record (x: float64[d], codes, missing NaN) to its prediction."""
        tree = arena.tree_view(self.plan, self.ints, self.main)
        node = end_of(tree, x, stop_at_missing=bool(self.plan.ints[at.PLAN_MOA]))
        return path_to(self.schema, tree, node, x)

    def predict(self, record: Record) -> Prediction:
        """Return what the model answers a record with; nothing is counted, nothing learned.

        The record: features by name, or in the order of the schema; None where one is missing. Features and
        values that the model does not know are ignored. Raises SchemaError for what it cannot take.
        """
        return prediction.predict(self.plan, self.ints, record)

    def snapshot(self) -> bytes:
        """Return the model as bytes; two models that went through the same give the same."""
        return snapshot.write(self.plan, self.ints)

    @staticmethod
    def restore(data: bytes) -> Model:
        """Return the model of a snapshot: it goes on as if it had never stopped."""
        return Model(*snapshot.read(data))

    def save(self, path: str | Path) -> None:
        """Write the snapshot to a file; the file is whole or not there."""
        target = Path(path)
        partial = target.with_name(target.name + ".partial")
        partial.write_bytes(self.snapshot())
        partial.replace(target)

    @staticmethod
    def load(path: str | Path) -> Model:
        """Return the model of a file that ``save`` or ``grove models export`` wrote."""
        data = Path(path).read_bytes()
        return Model.restore(portable.unwrap(data).snapshot if portable.is_portable(data) else data)

    def adopt(self, schema: Schema) -> None:
        """Take in a schema that has grown from the model's own; the state means the same as before."""
        if schema is self.schema:
            return
        if not schema.extends(self.schema):
            msg = (
                "schema must extend the model's: the same attributes, values and classes first, then new ones"
            )
            raise SchemaError(msg)
        if schema.n_attributes > self.schema.n_attributes and self.ints[self.main + at.TREE_NODES] > 1:
            msg = "schema must have the model's attributes: after the first split no feature can be added"
            raise SchemaError(msg)
        plan = Plan.of(self.spec, schema)
        ints = arena.relayout(self.plan, self.ints, plan, arena.blocks(self.ints))
        self.plan = plan
        self.use(ints)

    def configure(self, spec: Spec) -> None:
        """Take another spec for the same tree: query, budget, detector parameters, evaluation.every, seed,
        explain.
        """
        now = self.spec
        for what, same in (
            ("learner", spec.learner == now.learner),
            ("drift detector", spec.drift.name == now.drift.name),
            ("evaluation.window", spec.evaluation.window == now.evaluation.window),
            ("max_classes", spec.max_classes == now.max_classes),
        ):
            if not same:
                msg = f"{what} must stay as it is while a model lives; begin it anew with the new spec"
                raise SpecError(msg)
        plan = Plan.of(spec, self.schema)
        ints = arena.relayout(self.plan, self.ints, plan, arena.blocks(self.ints))
        self.plan = plan
        self.use(ints)

    def close(self, how: int, n: int = 1) -> None:
        """Close n requests for labels: ANSWERED, DECLINED or EXPIRED (account.py)."""
        close(self.ints, how, n)

    @property
    def main(self) -> int:
        """First word of the tree that answers."""
        return int(self.ints[at.MODEL_MAIN])
