"""The Hoeffding family of learners: the plug-ins a tree is made of, and its decisions at a due leaf."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core import registry, spelling
from core.errors import ParameterError, SchemaError
from core.kernels.records import offset
from core.layout.model import Floats, Ints
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding.blocks import TreeLayout
from core.learners.hoeffding.decision import Decision, HasState
from core.learners.protocol import Learner
from core.plugin import Parameters, choice, count, number
from core.schema.dimensions import Dimensions
from core.tree import prefetch, quirks
from core.tree.statistics import SLACK
from core.tree.views import TreeView

AXES: dict[str, str] = {
    "criterion": "criteria",
    "bound": "bounds",
    "schedule": "schedules",
    "numeric_observer": "observers",
    "nominal_observer": "observers",
    "leaf_model": "leaf_models",
}
"""The parameters of a learner that name a plug-in, each with the family of the plug-in."""

PLAN_ORDER: Final = ("numeric_observer", "nominal_observer", "criterion", "leaf_model", "schedule", "bound")
"""The same, in the order in which their numeric parameters lie in a plan."""


@dataclass(frozen=True, slots=True)
class HoeffdingLearner(Learner):
    """A tree learner; a subclass sets the defaults of the axes and makes the decisions.

    The parameters of the axes stand beside the learner's: ``{"name": "h-tree", "grace_period": 100}`` sets
    the parameter of the schedule. ``max_leaves`` stops growth [D1], and so does ``max_bytes``, the limit of
    the whole model; each tree has half of it where a drift detector may start a background tree.
    ``compat="moa"`` restores MOA's quirks wherever they change a split or a prediction. ``compat="imac"``
    restores the quirks of IMAC's published code: MOA's tree, but nodes inherit no weight, and a new leaf does
    not vote. ``compat="cdt"`` restores the quirks of CDT's code: MOA's tree with 100 candidates of the
    Gaussian observer, where the second of two classes with equal weight in a leaf wins.

    A new leaf inherits the class weight that its parent's observer estimates for the branch. ``evidence``
    selects whether confidence bounds include it [D8]: ``inherited``, as in MOA and River, splits earlier and
    predicts better; ``observed`` is the weight in the theorems, and the default of ``variant="theory"``. Only
    bounds change: grace periods and candidates count the observed weight of the leaf.
    """

    family: ClassVar[str] = "learners"

    criterion: Any = "info_gain"
    """Measure of the quality of a split."""
    bound: Any = "hoeffding"
    """Confidence that a split needs."""
    schedule: Any = "grace_period"
    """When a leaf makes an attempt."""
    numeric_observer: Any = "gaussian"
    """Statistics of numeric attributes in a leaf."""
    nominal_observer: Any = "nominal"
    """Statistics of nominal attributes in a leaf."""
    leaf_model: Any = "nba"
    """Prediction of a leaf."""
    max_leaves: int = count(1_000_000, at_least=1)
    """Number of leaves at which the tree stops growing."""
    max_bytes: float = number(float(1 << 30), at_least=1.0)
    """Bytes of a model at which its trees stop growing."""
    evidence: str | None = choice("inherited", "inherited", "observed")
    """The weight that bounds use: all weight that a leaf votes with, or that its gains come from."""
    compat: str | None = choice(None, None, "moa", "imac", "cdt")
    """The published code whose trees are grown, including its quirks."""

    axis_defaults: ClassVar[dict[str, Any]] = {}
    """Defaults of axis parameters that the learner changes; ignored where an axis lacks the parameter."""
    compat_defaults: ClassVar[dict[str, Any]] = {}
    """Axes and parameters of axes whose values differ from the preset in every published code."""
    compats: ClassVar[tuple[str | None, ...]] = (None, "moa", "imac")
    """The valid values of ``compat``."""
    kernels: ClassVar[str | None] = "core.learners.hoeffding.kernels"
    has_paths: ClassVar[bool] = True
    cdt_defaults: ClassVar[dict[str, Any]] = {"candidates": 100}
    """Axes and parameters of axes that ``compat="cdt"`` changes."""
    compiled: ClassVar[bool] = False
    """``core/learners/hoeffding/split_decision.py`` decides, so that failed attempts need no Python."""

    against_none: ClassVar[bool] = False
    """The best test has to lead no split by ε (EFDT), not the second best test."""
    last_of_two: ClassVar[bool] = False
    """A leaf with equal weight of the only two classes votes for the second class, not for the first [D9]."""

    def to_dict(self) -> dict[str, Any]:
        """Return name, axes by name, and all parameters, including those of the axes."""
        body: dict[str, Any] = {"name": self.spelled}
        for declared in dataclasses.fields(self):
            value = getattr(self, declared.name)
            if isinstance(value, Parameters):
                inner = value.to_dict()
                body[declared.name] = inner.pop("name")
                body |= inner
            else:
                body[declared.name] = value
        return body

    def decide(self, model: HasState, tree: Tree, node: Node, leaf: Leaf) -> Decision | None:
        """Return the decision on a due leaf; None: no change."""
        raise NotImplementedError

    @property
    def compiled_with(self) -> tuple[str, ...]:
        """Return the module of re-evaluation where splits are revised."""
        return ("core.learners.hoeffding.reevaluation",) if self.revision_words(1) else ()

    @property
    def quirks(self) -> int:
        """Return the quirks of published code that apply (core/tree/quirks.py), a bit for each."""
        return quirks.OF_COMPAT[self.compat]

    @property
    def tie_threshold(self) -> float:
        """Return τ: two tests count as equal if ε is below it; 0: never."""
        return 0.0

    @property
    def max_classes(self) -> int | None:
        """Return the number of classes that criterion and bound are limited to; None: any number."""
        limits = (self.criterion.max_classes, self.bound.max_classes(self.criterion))
        return min((limit for limit in limits if limit is not None), default=None)

    def check_schema(self, schema: Any) -> None:
        """Refuse a schema that has, or may come to have, more classes than the tree is defined for."""
        limit = self.max_classes
        classes = schema.max_classes if schema.classes_open else schema.n_classes
        if limit is not None and classes > limit:
            msg = (
                f"classes={classes} must be at most {limit} with criterion {self.criterion.name!r} and bound "
                f"{self.bound.name!r}; take another criterion (gini, info_gain), or variant 'practical'"
            )
            raise SchemaError(msg)

    @property
    def limits(self) -> tuple[float, float]:
        """Return the condition of a split, for schedules that look ahead: (gap, tie).

        A gap between two merits of range R is enough if its square times the weight exceeds ``gap``·R². A
        weight above ``tie``·R² is enough for any gap (infinite: never). NaN: there is no such number.
        """
        constant = self.bound.constant
        if constant is None or self.against_none:
            return math.nan, math.inf
        return constant * self.bound.factor**2, math.inf

    @property
    def can_be_rough(self) -> bool:
        """Whether observer and criterion have approximations (core/learners/hoeffding/quick_reject.py)."""
        observer = registry.module("observers", self.numeric_observer.name)
        criterion = registry.module("criteria", self.criterion.name)
        rough = hasattr(observer, "propose_roughly") and hasattr(criterion, "impurity_roughly")
        return rough and not self.quirks and not self.against_none

    @property
    def freezes(self) -> bool:
        """Whether a leaf other than the root that MOA starts again is never split any more."""
        return False

    # Revision of splits (core/learners/hoeffding/reevaluation.py); most learners' splits are final.

    def revision_words(self, attributes: int) -> int:
        """Return the length of the revision section of a leaf record; 0 if splits are final."""
        return 0

    @property
    def revisit_weight(self) -> float:
        """Return the weight between two evaluations of an inner node."""
        return math.inf

    @property
    def watches_inner_nodes(self) -> bool:
        """Whether the schedule, not ``revisit_weight``, determines when an inner node is evaluated."""
        return False

    restructures: ClassVar[bool] = False
    """A test that replaces another one keeps the subtree, rearranged (``max_branch_length``)."""

    def revise(self, model: HasState, tree: Tree, node: Node, leaf: Leaf) -> Decision | None:
        """Return the decision on an inner node that is due for a revision; None: no change."""
        raise NotImplementedError

    def resume(self, tree: TreeView, slot: int) -> None:
        """Set the schedule of a leaf that was an inner node and has kept its statistics."""
        raise NotImplementedError

    @property
    def subtree_words(self) -> int:
        """Return the length of the state of the subtree at a node; 0: the tree does not adapt (``hat``)."""
        return 0

    @property
    def only_multiway(self) -> bool:
        """Whether a nominal attribute of two values is always split by value, in no other way."""
        return not getattr(self.nominal_observer, "binary_splits", True)

    @classmethod
    def usual_evidence(cls, bound: Any, compat: str | None) -> str:
        """Return the evidence for a spec that names none: the choice of the published code or the theorem."""
        if compat is not None:
            return "inherited"
        if getattr(bound, "variant", None) == "theory":
            return "observed"
        (default,) = (declared.default for declared in dataclasses.fields(cls) if declared.name == "evidence")
        return str(default)

    # The weight that schedules count; in MOA it includes inherited weight.

    def weight(self, tree: Tree, node: Node, leaf: Leaf) -> float:
        if self.quirks & quirks.INHERITED_COUNTS:
            total = 0.0
            for mass in node.masses[: tree.model.classes].tolist():
                total += mass
            return total
        return float(leaf.observed)

    def begin(self, tree: TreeView, node: int, slot: int) -> None:
        """Set the schedule of a leaf that has seen nothing."""
        leaf = tree.block.leaf(slot)
        if self.quirks & quirks.INHERITED_COUNTS:
            inherited = 0.0
            for mass in tree.masses[node].tolist():
                inherited += mass
            leaf.evaluated = inherited
            leaf.next = self.schedule.first() - SLACK
        else:
            leaf.next = self.schedule.first()

    def begin_all(self, tree: TreeView, nodes: Ints, slots: Ints) -> None:
        """Set the schedules of leaves that have seen nothing; nodes, slots: int64[leaf]."""
        if self.quirks & quirks.INHERITED_COUNTS:
            for node, slot in zip(nodes.tolist(), slots.tolist(), strict=True):
                self.begin(tree, node, slot)
        else:
            tree.leaf_records.next[slots] = self.schedule.first()

    def is_due(self, tree: Tree, node: Node, leaf: Leaf) -> bool:
        """Return whether a leaf that the kernel reports is really due."""
        if not self.quirks & quirks.INHERITED_COUNTS or not self.schedule.periodic:
            return True
        since = self.weight(tree, node, leaf) - float(leaf.evaluated)
        step = self.schedule.step
        if step is None:  # intervals are whole, and start at the observed weight of that time
            then = float(leaf.observed) - since
            step = round(float(leaf.next) + SLACK - then)
        return bool(since >= step)

    @classmethod
    def build(cls, given: dict[str, Any], named: str) -> Any:
        """Return the tree with these parameters of the learner and its axes."""
        parameters = dict(given)
        defaults = {f.name: f.default for f in dataclasses.fields(cls)}
        arguments: dict[str, Any] = {}
        accepted = [name for name in defaults if name not in AXES]
        usual = cls.axis_defaults | (cls.compat_defaults if parameters.get("compat") is not None else {})
        usual |= cls.cdt_defaults if parameters.get("compat") == "cdt" else {}
        for axis, family in AXES.items():
            plugin = registry.plugin(
                family, _axis_name(axis, family, parameters.pop(axis, usual.get(axis, defaults[axis])))
            )
            names = [f.name for f in dataclasses.fields(plugin)]
            accepted += names
            preset = {name: value for name, value in usual.items() if name in names}
            arguments[axis] = plugin(
                **(preset | {name: parameters.pop(name) for name in names if name in parameters})
            )
        arguments |= {name: parameters.pop(name) for name in list(parameters) if name in accepted}
        arguments.setdefault("evidence", cls.usual_evidence(arguments["bound"], arguments.get("compat")))
        if parameters:
            msg = (
                f"{next(iter(parameters))}={next(iter(parameters.values()))!r} is no parameter of {named!r}; "
                f"{spelling.known(next(iter(parameters)), sorted([*accepted, *AXES]))}"
            )
            raise ParameterError(msg)
        built = cls(**arguments)
        for axis in ("numeric", "nominal"):
            _check_observer(axis, getattr(built, f"{axis}_observer").name)
        _check_criterion(built)
        if built.compat not in built.compats:
            options = ", ".join("null" if option is None else repr(option) for option in built.compats)
            msg = (
                f"compat={built.compat!r} must be one of {options} for {named!r}: "
                "no other published code is followed"
            )
            raise ParameterError(msg)
        return built

    # The interface that plans and models use (core/learners/protocol.py)

    def blocks(self, dims: Dimensions) -> TreeLayout:
        return TreeLayout(self, dims)

    @property
    def default_range(self) -> tuple[float, float]:
        """Return the range that the numeric observer takes."""
        low, high = self.numeric_observer.range
        return float(low), float(high)

    def plugins(self) -> list[tuple[int, Parameters]]:
        parts: list[tuple[int, Parameters]] = [
            (offset(PlanRecord, axis), getattr(self, axis)) for axis in PLAN_ORDER
        ]
        if self.schedule.judges:
            parts.append((offset(PlanRecord, "node_detector"), self.schedule.detector(self.compat)))
        return parts

    def shared_words(self, dims: Dimensions) -> int:
        """Return the number of words that the numeric observers of all leaves share."""
        return int(self.numeric_observer.shared(len(dims.numeric)))

    def write_plan(self, ints: Ints, floats: Floats, dims: Dimensions, blocks: TreeLayout) -> None:
        """Write the words that kernels of trees branch on."""
        shape = blocks.shape(1, 1)
        plan = PlanRecord(ints, floats, 0)
        plan.quirks = self.quirks
        plan.inherited = self.evidence == "inherited"
        plan.counted = dims.attributes + bool(self.quirks & quirks.CLASS_COUNTED)
        plan.sorts = self.criterion.sorts_branches
        plan.null_merit = self.criterion.null_merit_is_gain
        plan.schedule_state = shape.schedule_at
        plan.leaf_model_state = shape.leaf_model_at
        plan.gap, plan.tie = self.limits
        plan.incremental = self.criterion.is_incremental
        plan.quick_reject = self.can_be_rough
        plan.revision = shape.revision_at if shape.revision else 0
        plan.revisit = self.revisit_weight
        plan.watches = self.watches_inner_nodes
        if not dims.nominal:
            plan.route_ahead = prefetch.THRESHOLDS
        elif dims.halves and self.only_multiway and not self.quirks & quirks.STOPS_AT_MISSING:
            plan.route_ahead = prefetch.HALVES
        plan.schedule_ranked = self.schedule.ranked
        plan.judges = self.schedule.judges
        plan.against_none = self.against_none
        # MOA's schedule counts inherited weight: only the learner can compute whether a leaf is due.
        plan.compiled = self.compiled and not self.quirks
        # In a plain split a new leaf needs nothing from the leaf that was split, and no state of a schedule.
        is_plain = not shape.revision and not shape.leaf_model and not self.criterion.sorts_branches
        plan.plain_splits = self.compiled and not self.quirks and is_plain
        plan.max_leaves = self.max_leaves
        plan.first_attempt = self.schedule.first()
        plan.blank_leaf = blocks.blank_address
        plan.tau = self.tie_threshold
        plan.last_of_two = self.last_of_two or bool(self.quirks & quirks.LAST_OF_TWO)


def _axis_name(axis: str, family: str, value: Any) -> str:
    """Return the name given for an axis; refuse an object, which other parts of a spec may be."""
    if isinstance(value, str):
        return value
    msg = (
        f"{axis}={value!r} must be a name in quotes: {', '.join(registry.names(family))}; "
        f"its parameters stand beside it, among the learner's"
    )
    raise ParameterError(msg)


def _check_observer(kind: str, name: str) -> None:
    """Refuse an observer that is not for this kind of attributes."""
    fitting = [
        other
        for other in registry.names("observers")
        if hasattr(registry.module("observers", other), f"update_{kind}")
    ]
    if name not in fitting:
        msg = f"{kind}_observer={name!r} must be one of {', '.join(fitting)}"
        raise ParameterError(msg)


def _check_criterion(learner: HoeffdingLearner) -> None:
    needed, name = learner.bound.needs, learner.criterion.name
    if needed is None or hasattr(registry.module("criteria", name), needed):
        return
    fitting = [
        other for other in registry.names("criteria") if hasattr(registry.module("criteria", other), needed)
    ]
    msg = f"criterion={name!r} must be one of {', '.join(fitting)} with the bound {learner.bound.name!r}"
    raise ParameterError(msg)
