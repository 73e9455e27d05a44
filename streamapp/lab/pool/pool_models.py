"""Models of a spec in the pool protocol: the rows of the pool are ranked by the strategy of the spec.

    always, random                     uniformly among all rows
    strategies with a ``score``        a row with the highest score of all, uniformly among equal ones
    rate                               with probability ``explore`` uniformly, else by its ``score``
    boct_al                            the leaf with the largest bound of its risk (``risk: mbinomial``: of
                                       its excess), uniformly in it [D29]

Other strategies decide about one instance of a stream at a time and define no order of instances.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.active.queries.rate import BY_SHARE, RANKING, scored
from core.active.scores import SCORES
from core.layout.model import Floats, Ints
from core.learners.boct import boct
from core.model.model import Model
from core.model.pool import survey
from core.model_table import NO_LABEL, ModelTable
from core.numeric.credible import risk_bound
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.errors import UsageError
from streamapp.lab.pool.pool_protocol import COIN, PICK, pick

AT_RANDOM: Final = ("always", "random")
BY_LEAF: Final = "boct_al"
TOTAL: Final = "total"
"""The risk of a leaf by which ``boct_al`` ranks, if it is not mbinomial's excess."""
ENTERING: Final = ("pool", "stream")
"""Values of BOCT's ``sizes`` that count the rows of the pool."""


class ModelSystem:
    """A model of any learner, with a strategy that ranks rows."""

    def __init__(self, spec: Spec, schema: Schema, x: Floats) -> None:
        """Begin a model; x: float64[n, d], the rows of the pool. UsageError if the strategy cannot rank."""
        check_spec(spec)
        self._x = x
        self._explore, self._scored = ranking_of(spec)
        self._table = ModelTable()
        self._index = self._table.add(Model.create(spec, schema))
        query: Any = spec.query
        self._bounds = RiskBounds(query.delta) if query.name == BY_LEAF else None
        self._risk = query.risk if query.name == BY_LEAF else TOTAL
        self._ends = np.zeros(len(x), dtype=np.int64)
        self._split_at = 0
        n = len(x)
        if spec.learner.name == "boct" and spec.learner.sizes in ENTERING:
            self._table.answer(np.full(n, self._index), x, np.full(n, NO_LABEL, dtype=np.int32), np.ones(n))

    @property
    def model(self) -> Model:
        return self._table.model(self._index)

    @property
    def leaves(self) -> int:
        return self.model.summary().leaves

    def choose(self, unlabelled: Ints, drawn: Floats) -> int:
        if self._bounds is not None:
            return pick(self._in_riskiest_leaf(unlabelled, self._bounds), drawn[PICK])
        if self._scored is None or drawn[COIN] < self._explore:
            return pick(unlabelled, drawn[PICK])
        score = survey(self.model, self._x[unlabelled], self._scored).score
        return pick(unlabelled[score == score.max()], drawn[PICK])

    def learn(self, row: int, label: int) -> None:
        self._table.learn(
            np.array([self._index]),
            self._x[row : row + 1],
            np.array([label], dtype=np.int32),
            np.ones(1),
            np.array([-1], dtype=np.int32),
            np.zeros(1, dtype=np.bool_),
        )

    def predict(self, x: Floats) -> npt.NDArray[np.int32]:
        return survey(self.model, x).prediction

    def _in_riskiest_leaf(self, unlabelled: Ints, bounds: RiskBounds) -> Ints:
        """Return the unlabelled rows of the leaf with the largest bound that has some; of ties, the first."""
        leaves = boct.leaves(self.model)
        if len(leaves.node) != self._split_at:
            self._ends, self._split_at = boct.leaf_of(self.model, self._x), len(leaves.node)
        order = riskiest(leaves.size, bounds.of(leaves.labels, leaves.positives), self._risk)
        ends = self._ends[unlabelled]
        for leaf in order:
            rows: Ints = unlabelled[ends == leaves.node[leaf]]
            if len(rows):
                return rows
        message = f"every one of {len(unlabelled)} rows must end in one of {len(leaves.node)} leaves"
        raise RuntimeError(message)


def riskiest(sizes: Floats, bounds: Floats, risk: str) -> Ints:
    """Return leaves by their score in ``boct_al``, the largest first, of ties the first; int64[leaf].

    sizes, bounds: float64[leaf], W and q. The score of a leaf is W·q. If ``risk`` is mbinomial, it is
    W·max(0, 2q - 1), and leaves with equal scores are in the order of W·q.
    """
    order: Ints = np.argsort(-sizes * bounds, kind="stable")
    if risk == TOTAL:
        return order
    excess = sizes * np.maximum(0.0, 2.0 * bounds - 1.0)
    ranking: Ints = order[np.argsort(-excess[order], kind="stable")]
    return ranking


class RiskBounds:
    """Upper credible bounds of the risk per unit of size by (T, k), each computed once (BCI, equation 7)."""

    def __init__(self, delta: float) -> None:
        self._delta = delta
        self._known: dict[tuple[int, int], float] = {}

    def of(self, labels: Ints, positives: Ints) -> Floats:
        """Return float64[n]; labels, positives: int64[n]."""
        pairs = list(zip(labels.tolist(), positives.tolist(), strict=True))
        if new := sorted({pair for pair in pairs if pair not in self._known}):
            t, k = np.array(new, dtype=np.float64).T
            self._known.update(zip(new, np.atleast_1d(risk_bound(t, k, self._delta)).tolist(), strict=True))
        return np.array([self._known[pair] for pair in pairs])

    def at(self, labels: int, positives: int) -> float:
        """Return the bound of one leaf."""
        bound = self._known.get((labels, positives))
        return float(self.of(np.array([labels]), np.array([positives]))[0]) if bound is None else bound


def ranking_of(spec: Spec) -> tuple[float, str | None]:
    """Return how often a strategy explores, and whose score ranks rows (None: it draws)."""
    query: Any = spec.query
    if query.name in RANKING:
        return query.explore, BY_SHARE if query.score in SCORES else query.score
    return 0.0, query.name if query.name in scored() and query.name != BY_LEAF else None


def check_spec(spec: Spec) -> None:
    """Refuse parts of a spec that have no meaning in a pool."""
    usable = (*AT_RANDOM, BY_LEAF, *RANKING, *scored())
    if spec.query.name not in usable:
        message = (
            f"query={spec.query.name!r} cannot rank the rows of a pool; known here: "
            f"{', '.join(sorted(set(usable)))}"
        )
        raise UsageError(message)
    if spec.query.name == BY_LEAF and spec.learner.name != "boct":
        message = f"query='boct_al' needs the leaves of learner 'boct', not of {spec.learner.name!r}"
        raise UsageError(message)
    if spec.drift.name != "none":
        message = f"drift={spec.drift.name!r} must be 'none': a pool has no order in time"
        raise UsageError(message)
