"""Forests: the common base of ensembles of Hoeffding trees."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Final

from core.drift import adwin, none
from core.drift.base import Detector
from core.errors import ParameterError
from core.kernels.records import offset
from core.layout.model import Floats, Ints
from core.layout.plan import PlanRecord
from core.learners.forest.blocks import ForestLayout
from core.learners.forest.layout import FOREST_HEADER
from core.learners.hoeffding.learner import HoeffdingLearner
from core.learners.protocol import Learner, build
from core.plugin import Parameters, choice, count, number
from core.schema.dimensions import Dimensions
from core.schema.schema import Schema

SHARED: Final = ("max_bytes",)
"""Parameters of a tree that a member does not have: they belong to the forest."""

STRETCH_CELLS: Final = 1 << 14
"""Values of the records that a member learns before the next member: with a tree they fit into the cache."""
SHORTEST: Final = 32
LONGEST: Final = 512
"""Maximum of records in a stretch, for any number of attributes."""


@dataclass(frozen=True, slots=True)
class Forest(Learner):
    """An ensemble of trees that learn resampled records and vote; subclasses define how to replace trees."""

    kernels: ClassVar[str | None] = "core.learners.forest.kernels"
    member_defaults: ClassVar[dict[str, Any]] = {}
    """Defaults of member parameters that the forest changes; ignored where a member lacks the parameter."""
    replaces_worst: ClassVar[bool] = False
    """An alarm of any member replaces the member with the largest error."""
    has_members: ClassVar[bool] = True
    weights_votes: ClassVar[bool] = True
    """Votes are weighted by accuracy."""
    boosts: ClassVar[bool] = False
    """Members learn a record in turn, by the answers of the members before them."""

    members: int = count(10, at_least=1, at_most=1000)
    """Number of trees that vote."""
    member: Any = "h-tree"
    """The learner of each member: a tree's name, or an object like a spec's learner."""
    poisson: float = number(6.0, at_least=0.0, at_most=100.0)
    """Mean of the Poisson variate k: a member learns each record k times; 0: each record once."""
    max_bytes: float = number(float(1 << 30), at_least=1.0)
    """Bytes of a model; in a full forest the least promising leaves are deactivated (docs/trees.md)."""
    uncertainty: str = choice("shares", "shares", "votes")
    """With ``votes``, strategies that name no ``score`` use the entropy of the members' votes."""
    compat: str | None = choice(None, None, "moa")
    """The published code whose forests are grown, including its quirks."""

    def __post_init__(self) -> None:
        """Check the parameters, and make the member."""
        Parameters.__post_init__(self)
        object.__setattr__(self, "member", self._member_of(self.member))

    def _member_of(self, member: Any) -> HoeffdingLearner:
        """Return the tree that a spec names as member, with the forest's defaults for it."""
        if isinstance(member, HoeffdingLearner):
            return member
        body = {"name": member} if isinstance(member, str) else member
        if not isinstance(body, dict) or not isinstance(body.get("name", "h-tree"), str):
            msg = f"member={member!r} of {self.spelled!r} must be a name or an object with a 'name'"
            raise ParameterError(msg)
        body = {"name": "h-tree"} | body
        for name in SHARED:
            if name in body:
                msg = f"{name}={body[name]!r} is no parameter of a member; give it to {self.spelled!r}"
                raise ParameterError(msg)
        usual = build({"name": body["name"]})
        if not isinstance(usual, HoeffdingLearner):
            msg = f"member={body['name']!r} of {self.spelled!r} must be a tree: h-tree, c-tree, efdt, imac, …"
            raise ParameterError(msg)
        parameters = usual.to_dict()
        preset = {name: value for name, value in self.member_defaults.items() if name in parameters}
        if self.compat is not None and self.compat in usual.compats:
            preset["compat"] = self.compat
        tree: HoeffdingLearner = build(preset | body)
        return tree

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters as a spec writes them."""
        body: dict[str, Any] = {"name": self.spelled}
        body |= {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        body["member"] = {name: v for name, v in self.member.to_dict().items() if name not in SHARED}
        return body

    def constants(self) -> tuple[float, ...]:
        """Return the parameters that kernels read."""
        return (self.poisson,)

    @property
    def drift(self) -> Detector:
        """The detector whose alarm replaces a member."""
        return none.Plugin()

    @property
    def warning(self) -> Detector:
        """The detector whose alarm starts a member's background tree."""
        return none.Plugin()

    @property
    def background_once(self) -> bool:
        """Whether a background tree learns a record once, even if its member learns it more often."""
        return False

    @property
    def subspaces(self) -> bool:
        """Whether attributes are sampled for a member, not for each of its leaves."""
        return False

    @property
    def begins_apart(self) -> bool:
        """Whether the first trees of the members have different subsets of few attributes."""
        return False

    def attributes_seen(self, attributes: int) -> int:
        """Return how many of the attributes a leaf, or a member, sees."""
        return attributes

    def detector(self, confidence: float) -> Detector:
        """Return ADWIN with a confidence; 0: no detector."""
        if confidence == 0.0:
            return none.Plugin()
        return adwin.Plugin(confidence=confidence, compat=self.compat)

    # The interface that plans and models use (core/learners/protocol.py)

    @property
    def as_spec(self) -> Any:
        """Return the object that growth takes as the spec of a member."""
        return SimpleNamespace(learner=self.member)

    @property
    def max_classes(self) -> int | None:
        return self.member.max_classes

    @property
    def default_range(self) -> tuple[float, float]:
        """Return the range that the members' numeric observer takes."""
        low, high = self.member.default_range
        return low, high

    @property
    def compiled_with(self) -> tuple[str, ...]:
        """Return modules with kernels that members need."""
        return ("core.learners.hoeffding.kernels", "core.learners.forest.stretch", *self.member.compiled_with)

    def check_schema(self, schema: Schema) -> None:
        """Refuse a schema that a member refuses."""
        self.member.check_schema(schema)

    def blocks(self, dims: Dimensions) -> ForestLayout:
        return ForestLayout(self, dims)

    def plugins(self) -> list[tuple[int, Parameters]]:
        return [
            *self.member.plugins(),
            (offset(PlanRecord, "node_detector"), self.drift),
            (offset(PlanRecord, "warning_detector"), self.warning),
        ]

    def shared_words(self, dims: Dimensions) -> int:
        """Return the number of words that the members share, as leaves of one tree do."""
        return self.member.shared_words(dims)

    def write_plan(self, ints: Ints, floats: Floats, dims: Dimensions, blocks: ForestLayout) -> None:
        """Write the words that the members' kernels branch on: forest and trees have one plan."""
        self.member.write_plan(ints, floats, dims, blocks.trees)
        plan = PlanRecord(ints, floats, 0)
        plan.route_ahead = 0
        # Members may depend on each other through the shared words, or by boosting.
        if self.shared_words(dims) == 0 and not self.boosts:
            plan.stretch = min(max(STRETCH_CELLS // dims.attributes, SHORTEST), LONGEST)
        plan.review = blocks.review_period
        # The bytes that a block may surely take are for all of its trees: each tree has half of a part.
        parts = 2 * blocks.slots if blocks.review_period else blocks.slots
        plan.sure_words = max(int(plan.sure_words) // parts - blocks.stride - FOREST_HEADER, 0)
        blocks.plan_words = ints


def share_of(parameter: float, attributes: int) -> int:
    """Return the number of attributes that a parameter means: below 1 a share of all, else a number."""
    number = round(parameter * attributes) if parameter < 1.0 else round(parameter)
    return min(max(number, 1), attributes)


def root_of(attributes: int) -> int:
    """Return the usual number of attributes of a leaf: √d + 1, rounded."""
    return min(round(math.sqrt(attributes)) + 1, attributes)
