"""SEED: a window of blocks that drops its older part when means differ (Huang, Koh, Dobbie, Pears 2014).

Unlike ADWIN's buckets, blocks have their length by what they hold: neighbours with nearly equal means become
one block, the older the more readily, so that a cut is tested only where the mean may have changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.drift.base import DRIFT, IN_CONTROL, Detector
from core.errors import ParameterError
from core.kernels.jit import called, kernel
from core.kernels.records import Record, word, words_after
from core.layout.model import Floats
from core.plugin import Parameters, choice, count, flag, number

MOST_BLOCKS: Final = 256
"""Blocks that a window may have. A full window merges its two oldest blocks."""

MOST_INPUTS: Final = 10_000
"""Inputs that a block may have; there is no drift before the end of the second block."""

PROBLEMS: Final = (
    f"blocks must be a whole number from 0 to {MOST_BLOCKS}",
    "inputs in the window must be the sum of its blocks",
    "inputs must be a number of at least 0",
    "a window without blocks must end where a block begins",
)


class InputBlock(Record):
    """Inputs that follow each other."""

    n: float = word("inputs")
    total: float = word("sum of the inputs")
    squares: float = word("sum of the squared inputs; with compat='moa' the block's part of MOA's variance")


BLOCK_WORDS: Final = InputBlock.SIZE


class SeedState(Record):
    """The window, its oldest block first."""

    inputs: float = word("inputs since the beginning")
    width: float = word("inputs in the window")
    total: float = word("sum of these inputs")
    squares: float = word("sum of the blocks' squares")
    blocks: float = word("number of blocks")
    added: float = word("blocks added since neighbours were last merged")
    cells: Any = words_after(float, "the blocks")

    def block(self, number: int) -> InputBlock:
        """Return a block; block 0 is the oldest."""
        return InputBlock(self.ints, self.floats, self.start + FIRST_BLOCK + number * BLOCK_WORDS)


FIRST_BLOCK: Final = SeedState.SIZE
STATE_WORDS: Final = FIRST_BLOCK + MOST_BLOCKS * BLOCK_WORDS


@dataclass(frozen=True, slots=True)
class Plugin(Detector):
    """A window in blocks: drift when the mean of its newer part exceeds the mean of its older part.

    ``{"name": "seed", "confidence": 0.05, "block": 32, "merge_below": 0.01, "growth": 0.8, "merge_every":
    75}``. Whenever ``block`` inputs have come, all borders of blocks are tested from the newest on, with
    ADWIN's bound at the confidence δ; the first one that differs becomes the beginning of the window. After
    ``merge_every`` blocks neighbours are merged if their means differ by less than j·``merge_below``·
    ``growth``, where j counts them from the newest on (linear decay). If the mean falls, the older part is
    dropped without a drift; with ``two_sided`` this is a drift too. There is no warning level.

    ``compat="moa"`` has MOA's running variance, and every cut is a drift, so that it needs ``two_sided``.
    """

    NUMBERS: ClassVar[tuple[str, ...]] = (
        "confidence",
        "block",
        "merge_below",
        "growth",
        "merge_every",
        "two_sided",
        "is_moa",
    )

    confidence: float = number(0.05, above=0.0, below=1.0)
    """Probability that a border of two blocks is taken for a change."""
    block: int = count(32, at_least=1)
    """Inputs of a new block."""
    merge_below: float = number(0.01, at_least=0.0)
    """Difference of two means below which the newest blocks are merged (the paper's ε')."""
    growth: float = number(0.8, at_least=0.0)
    """Factor by which this difference grows with each older pair (the paper's α)."""
    merge_every: int = count(75, at_least=1, at_most=MOST_BLOCKS - 2)
    """New blocks after which neighbours are merged."""
    two_sided: bool = flag(False)
    """Whether a falling error rate is a drift, too."""
    compat: str | None = choice(None, None, "moa")
    """The published formulas, or MOA's."""

    def __post_init__(self) -> None:
        """Check the parameters, separately and together."""
        Detector.__post_init__(self)
        if self.compat == "moa" and not self.two_sided:
            msg = "two_sided=False must be true with compat='moa': a falling mean is a drift of MOA's"
            raise ParameterError(msg)

    def check_together(self) -> None:
        """Refuse blocks that are too long for a test, or that merge whatever they hold."""
        if self.block > MOST_INPUTS:
            msg = (
                f"block={self.block} must be at most {MOST_INPUTS}: borders are tested after each block, "
                "from the second one on; lower it"
            )
            raise ParameterError(msg)
        if self.merge_below * self.growth > 1.0:
            msg = (
                f"merge_below={self.merge_below} must be at most {1.0 / self.growth:.3g} with "
                f"growth={self.growth}: all neighbours merge, because no two means differ by more than 1; "
                "lower it, or growth"
            )
            raise ParameterError(msg)

    def constants(self) -> tuple[float, ...]:
        """Return the parameters in the order of NUMBERS."""
        return (*Detector.constants(self), float(self.compat == "moa"))

    def continues(self, before: Parameters) -> bool:
        """Return whether a state means the same: blocks must begin at the same inputs, with the same sums."""
        return isinstance(before, Plugin) and (before.block, before.compat) == (self.block, self.compat)

    def initial(self) -> tuple[float, ...]:
        return (0.0,) * STATE_WORDS

    def error_rate(self, state: Floats) -> float:
        """Return the mean of the window."""
        window = SeedState.over(state)
        return float(window.total / window.width) if window.width else 0.0


@kernel
def update(p, state: SeedState, error: float) -> int:
    """Take in one error (1.0) or success (0.0) and return the level."""
    if int(state.inputs) % int(p.block) == 0:
        add_block(p, state)
    state.inputs += 1.0
    width, total = state.width + 1.0, state.total + error
    square = error * error
    if p.is_moa != 0.0:
        distance = error - total / (width - 1.0) if width > 1.0 else 0.0
        square = (width - 1.0) * distance * distance / width
    block = state.block(int(state.blocks) - 1)
    block.n += 1.0
    block.total += error
    block.squares += square
    state.width = width
    state.total = total
    state.squares += square
    if state.blocks < 2.0 or int(state.inputs) % int(p.block) != 0:
        return IN_CONTROL
    mean = total / width
    if not was_cut(p, state):
        return IN_CONTROL
    return DRIFT if p.two_sided != 0.0 or state.total > mean * state.width else IN_CONTROL


@called
def add_block(p, state: SeedState) -> None:
    """Begin a block; merge neighbours if it is time, and the two oldest blocks if there is no room."""
    if state.blocks > 0.0:
        if state.blocks > 1.0 and state.added > p.merge_every:
            state.added = 0.0
            merge_neighbours(p, state)
        state.added += 1.0
    n = int(state.blocks)
    if n == MOST_BLOCKS:
        add(state.block(1), state.block(0))
        drop_oldest(state, 1)
        n -= 1
    block = state.block(n)
    block.n = 0.0
    block.total = 0.0
    block.squares = 0.0
    state.blocks = n + 1.0


@kernel
def merge_neighbours(p, state: SeedState) -> None:
    """Merge neighbours whose means hardly differ, from the newest pair on."""
    n = int(state.blocks)
    newest = n - 1  # place of the merged block that still grows; the older ones lie before it
    limit = 0.0
    for position in range(n - 2, -1, -1):
        older, newer = state.block(position), state.block(newest)
        limit += p.merge_below * p.growth
        if abs(older.total / older.n - newer.total / newer.n) < limit:
            add(newer, older)
        else:
            newest -= 1
            copy(state.block(newest), older)
    drop_oldest(state, newest)


@kernel
def was_cut(p, state: SeedState) -> bool:
    """Test the borders between blocks from the newest on; drop the blocks before the first that differs."""
    older, older_total = state.width, state.total
    newer, newer_total = 0.0, 0.0
    variance = state.squares / state.width
    if p.is_moa == 0.0:
        mean = state.total / state.width
        variance = max(variance - mean * mean, 0.0)
    logarithm = math.log(2.0 * math.log(state.width) / p.confidence)
    for position in range(int(state.blocks) - 1, 0, -1):
        block = state.block(position)
        older -= block.n
        newer += block.n
        older_total -= block.total
        newer_total += block.total
        inverse = 1.0 / older + 1.0 / newer
        bound = math.sqrt(2.0 * inverse * variance * logarithm) + 2.0 / 3.0 * logarithm * inverse
        if abs(newer_total / newer - older_total / older) > bound:
            for before in range(position - 1, -1, -1):
                dropped = state.block(before)
                state.width -= dropped.n
                state.total -= dropped.total
                state.squares -= dropped.squares
            drop_oldest(state, position)
            return True
    return False


@kernel
def add(block: InputBlock, other: InputBlock) -> None:
    """Add the inputs of another block to a block."""
    block.n += other.n
    block.total += other.total
    block.squares += other.squares


@kernel
def copy(block: InputBlock, other: InputBlock) -> None:
    block.n = other.n
    block.total = other.total
    block.squares = other.squares


@kernel
def drop_oldest(state: SeedState, dropped: int) -> None:
    """Remove the oldest blocks; places that become free are zeros."""
    kept = int(state.blocks) - dropped
    for cell in range(kept * BLOCK_WORDS):
        state.cells[cell] = state.cells[dropped * BLOCK_WORDS + cell]
    for cell in range(kept * BLOCK_WORDS, (kept + dropped) * BLOCK_WORDS):
        state.cells[cell] = 0.0
    state.blocks = kept


@kernel
def problem(p, state: SeedState) -> int:
    n = state.blocks
    if not 0.0 <= n <= MOST_BLOCKS or n != math.floor(n):
        return 1
    width = 0.0
    for position in range(int(n)):
        block = state.block(position)
        if not block.n >= 1.0:
            return 2
        width += block.n
    if state.width != width:
        return 2
    if not 0.0 <= state.inputs < math.inf:
        return 3
    # Inside a block ``update`` adds to the newest one.
    return 4 if n < 1.0 and int(state.inputs) % int(p.block) != 0 else 0
