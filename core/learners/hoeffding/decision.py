"""What a tree's learner decides at a due node, and what it reads for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from core.tree import layout as at
from core.tree.layout import Floats, Ints

FORGET: Final = at.LEAF
"""A decision's test that stands for: do not split, begin to observe anew."""


class HasState(Protocol):
    """A model, as far as growth goes: it reads words, and has blocks laid out anew for more room."""

    plan: Any
    address: int
    ints: Ints
    floats: Floats

    @property
    def spec(self) -> Any:
        """What the model was built from."""

    @property
    def block_places(self) -> list[int]:
        """First words of the blocks, that which answers first."""

    def make_room(self, t: int, room: tuple[int, ...]) -> int:
        """Give the block at word t this room; return where it begins then."""

    def extends(self, t: int) -> bool:
        """Return whether the block at word t, a large one, usually gets room where it lies."""


Reason = Literal["gap", "tie", "only"]
Action = Literal["split", "replaced", "moved", "pruned"]
"""What is done to a node: a leaf is split; an inner node gets another test and new leaves, another threshold
over the same subtrees, or becomes a leaf."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A test to install, and why."""

    attribute: int
    test: int
    """Kind of the inner node, or FORGET."""
    value: float
    merits: tuple[float, float]
    bound: float
    n: float
    reason: Reason
    action: Action = "split"
