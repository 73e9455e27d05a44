"""Decision of a tree's learner at a due node, and the model interface that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from core.layout.model import Floats, Ints
from core.layout.tree import LEAF, Tree

FORGET: Final = LEAF
"""A decision's test with the meaning: do not split, and observe from the start again."""


class HasState(Protocol):
    """The interface of a model that growth uses: it reads words, and makes room in blocks."""

    plan: Any
    address: int
    ints: Ints
    floats: Floats

    @property
    def spec(self) -> Any:
        """The parameters that the model was built from."""

    @property
    def block_places(self) -> list[int]:
        """First words of the blocks; the block that answers comes first."""

    def make_room(self, t: int, room: tuple[int, ...]) -> int:
        """Give the block at word t this room; return its first word after that."""

    def extends(self, t: int) -> bool:
        """Return whether the block at word t, a large one, usually gets more room without being moved."""


def tree_of(model: HasState, t: int) -> Tree:
    """Return the tree at word t of a model, until the model's blocks are moved."""
    return Tree(model.ints, model.floats, t)


Reason = Literal["gap", "tie", "only"]
Action = Literal["split", "replaced", "moved", "pruned"]
"""A change of a node: a leaf is split; an inner node gets another test and new leaves, or another threshold
over the same subtrees, or becomes a leaf.
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """A test to install, and the reason."""

    attribute: int
    test: int
    """Kind of the inner node, or FORGET."""
    value: float
    merits: tuple[float, float]
    bound: float
    n: float
    reason: Reason
    action: Action = "split"
