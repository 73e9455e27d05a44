"""Model: a spec, a schema, and one buffer of words that is its whole state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from core import evaluation
from core.active.label_account import Account, close
from core.errors import SchemaError, SpecError
from core.evaluation import Evaluation, MeasuresThen
from core.kernels import jit
from core.layout.model import Floats, Ints, ModelHeader
from core.learners.protocol import Room
from core.learning_curve.forecast import CurveThen, Forecast
from core.measures.class_measures import Measures
from core.model import buffers, prediction, snapshot, validate
from core.model import file as model_file
from core.model.buffers import Block
from core.model.prediction import Prediction, Record
from core.plan import Plan
from core.publishing import coverage
from core.publishing.coverage import Coverage
from core.schema.schema import Schema
from core.spec import Spec
from core.tree import allocation
from core.tree.conditions import Branch


@dataclass(frozen=True, slots=True)
class Summary:
    """The size and counters of a model; sizes are of the block that answers."""

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
    """Labels that were requested; the sum of answered, declined, expired and outstanding."""
    answered: int
    """Requested labels that were learned."""
    declined: int
    """Requests that will get no label."""
    expired: int
    """Requests whose label did not come in time."""
    outstanding: int
    """Requests that are still open."""
    refused: int
    """Records that the query strategy did not score, because the budget was closed."""
    rebuilds: int
    """Blocks replaced after a drift."""
    growth_stopped: bool
    """The tree that answers reached max_leaves or max_bytes."""


class Scale(NamedTuple):
    """Counters for metrics of very many models: words of the header, without a walk through a tree."""

    nodes: int
    """Nodes of the block that answers, places of absent branches included."""
    nbytes: int
    records: int
    """Records answered."""
    requests: int
    """Labels requested."""


class Model:
    """State of one model; kernels reach it through a ModelTable."""

    __slots__ = ("_whole", "address", "floats", "ints", "plan")

    def __init__(self, plan: Plan, ints: Ints) -> None:
        """Take a plan and a buffer that was laid out for it."""
        self.plan = plan
        self.use(ints)

    @staticmethod
    def create(spec: Spec, schema: Schema) -> Model:
        plan = Plan.of(spec, schema)
        plan.check_room()
        return Model(plan, buffers.new_model(plan))

    def use(self, ints: Ints, whole: Ints | None = None) -> None:
        """Use a buffer as the model's state; whole: the buffer with the zeros after it for growth."""
        self.ints: Ints = ints
        self._whole: Ints = ints if whole is None else whole
        self.floats: Floats = ints.view(np.float64)
        self.address: int = ints.ctypes.data
        jit.register(ints)

    @property
    def header(self) -> ModelHeader:
        """The first words of the model by name."""
        return ModelHeader(self.ints, self.floats, 0)

    @property
    def spec(self) -> Spec:
        return self.plan.spec

    @property
    def schema(self) -> Schema:
        """The schema of the model's records."""
        return self.plan.schema

    @property
    def nbytes(self) -> int:
        return self.ints.nbytes

    def summary(self) -> Summary:
        """Return the model's size and counters."""
        header = ModelHeader.read(self.ints)
        account, size = Account.in_header(header), self.plan.blocks.summary(self.ints, header.first)
        return Summary(
            leaves=size.leaves,
            nodes=size.nodes,
            depth=size.depth,
            splits=size.splits,
            attempts=size.attempts,
            labels=header.labels,
            records=header.records,
            version=header.labels,
            requests=account.asked,
            answered=account.answered,
            declined=account.declined,
            expired=account.expired,
            outstanding=account.outstanding,
            refused=account.refused,
            rebuilds=header.rebuilds,
            growth_stopped=size.growth_stopped,
        )

    def scale(self) -> Scale:
        """Return the model's size and counts of requests; a hundred times faster than ``summary``."""
        header = self.header
        return Scale(
            nodes=self.plan.blocks.nodes(self.ints, int(header.first)),
            nbytes=self.ints.nbytes,
            records=int(header.records),
            requests=int(header.requests),
        )

    def evaluation(self) -> Evaluation:
        return evaluation.read(self.plan, self.ints)

    def measures(self) -> Measures | None:
        """Return the measures per class; None: the spec's ``evaluation.per_class`` is false."""
        sums = MeasuresThen.of(self.plan, self.ints)
        return None if sums is None else sums.read()

    def coverage(self) -> Coverage | None:
        """Return how often sets held the label; None: the spec has no ``conformal``."""
        return coverage.read(self.plan.record, self.ints)

    def learning_curve(self) -> Forecast | None:
        """Return the learning curve and its forecast; None: the spec's ``evaluation.worth`` is 0."""
        curve = CurveThen.of(self.plan, self.ints)
        return None if curve is None else curve.read()

    def explain(self, x: Floats) -> tuple[Branch, ...]:
        """Return the branches that lead a record (x: float64[d], codes, missing NaN) to its prediction."""
        branches: tuple[Branch, ...] = self.plan.blocks.explain(self.schema, self.ints, self.first, x)
        return branches

    def predict(self, record: Record) -> Prediction:
        """Return the model's prediction for a record; nothing is counted or learned.

        The record: features by name, or in the order of the schema; None where one is missing. Features and
        values that the model does not have are ignored. Raises SchemaError for an invalid record.
        """
        return prediction.predict(self.plan, self.ints, record)

    def snapshot(self) -> bytes:
        """Return the model as bytes; models with the same history have the same bytes."""
        return snapshot.write(self.plan, self.ints)

    @staticmethod
    def restore(data: bytes | memoryview) -> Model:
        """Return the model of a snapshot: it continues as if it had never stopped."""
        return Model(*snapshot.read(data))

    def save(self, path: str | Path) -> None:
        """Write the snapshot to a file, atomically."""
        model_file.write_whole(Path(path), self.snapshot())

    @staticmethod
    def load(path: str | Path) -> Model:
        """Return the model of a file that ``save`` or ``grove models export`` wrote.

        Raises SnapshotError if the file is not a model, or if its words are inconsistent: files are not
        trusted.
        """
        data = Path(path).read_bytes()
        model = Model.restore(model_file.unwrap(data).snapshot if model_file.is_portable(data) else data)
        validate.check(model)
        return model

    def adopt(self, schema: Schema) -> None:
        """Change to a schema that has grown from the model's; the meaning of the state does not change."""
        if schema is self.schema:
            return
        if not schema.extends(self.schema):
            msg = "schema must extend the model's: its attributes, values and classes first, then new entries"
            raise SchemaError(msg)
        if schema.n_attributes > self.schema.n_attributes and not self.takes_attributes:
            msg = "schema must have the model's attributes: after the first split no feature can be added"
            raise SchemaError(msg)
        plan = Plan.of(self.spec, schema, self.plan)
        ints = buffers.relayout(self.plan, self.ints, plan, buffers.blocks(self.plan, self.ints))
        self.plan = plan
        self.use(ints)

    def configure(self, spec: Spec) -> None:
        """Change the spec for the same learner.

        Query, budget, parameters of the detector, input detector, evaluation.every, seed, explain, class
        weights, calibration and sets may change. Another calibrator begins without labels.
        """
        now = self.spec
        for what, same in (
            ("learner", spec.learner == now.learner),
            ("drift detector", spec.drift.name == now.drift.name),
            ("evaluation.window", spec.evaluation.window == now.evaluation.window),
            ("max_classes", spec.max_classes == now.max_classes),
        ):
            if not same:
                msg = f"{what} must stay as it is while a model lives; create it again with the new spec"
                raise SpecError(msg)
        plan = Plan.of(spec, self.schema)
        ints = buffers.relayout(self.plan, self.ints, plan, buffers.blocks(self.plan, self.ints))
        self.plan = plan
        self.use(ints)

    def close(self, how: int, n: int = 1) -> None:
        """Close n requests for labels: ANSWERED, DECLINED or EXPIRED (label_account.py)."""
        close(self.header, how, n)

    def take_account(self, other: Model) -> None:
        """Continue the requests of another model of the same records, and their numbers."""
        header, theirs = self.header, other.header
        header.records, header.requests, header.replies = theirs.records, theirs.requests, theirs.replies
        header.declined, header.expired = theirs.declined, theirs.expired
        header.reserved, header.refused = theirs.reserved, theirs.refused

    @property
    def takes_attributes(self) -> bool:
        """Whether the schema may still grow by attributes; for a tree, until its first split."""
        return bool(self.plan.blocks.takes_attributes(self.ints, self.first))

    @property
    def undecided_weight(self) -> float:
        """Weight of labels until which nothing depends on the number of attributes; negative: answers do."""
        return min(self.plan.blocks.undecided_weight(self.ints, t) for t in self.block_places)

    @property
    def first(self) -> int:
        """First word of the block that answers."""
        return int(self.header.first)

    @property
    def block_places(self) -> list[int]:
        """First words of the blocks; the first block answers."""
        return buffers.block_places(self.ints)

    def make_room(self, t: int, room: Room) -> int:
        """Give the block at word t this room; return its first word afterwards."""
        longer = buffers.extend(self.plan, self.ints, self._whole, t, room)
        if longer is not None:
            self.use(longer, self._whole)
            return t
        blocks = buffers.blocks(self.plan, self.ints)
        position = self.block_places.index(t)
        blocks[position] = Block(t, room)
        words = buffers.words_of(self.plan, blocks)
        can_extend = self.plan.blocks.extends
        whole = (
            allocation.reserved_words(words, self.spec.learner.max_bytes)
            if can_extend
            else allocation.aligned_words(words)
        )
        buffers.lay_out(self.plan, self.ints, self.plan, blocks, whole[:words])
        self.use(whole[:words], whole)
        return self.block_places[position]

    def extends(self, t: int) -> bool:
        """Return whether the block at word t is large and can usually be extended in place."""
        return self.nbytes >= allocation.LARGE_BYTES and buffers.may_extend(self.plan, self.ints, t)
