"""Problems of a foreign buffer as one number, so that compiled code can return them.

From the lowest bits on: the number of a sentence (from 1 on; 0: sound), the word of the plan that names the
plug-in whose sentence it is (0: the frame's own), the place in a block plus one (0: none), the block.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from core.kernels.jit import kernel

SOUND: Final = 0
MOST: Final = 1 << 53
"""Largest counter: beyond it neither floats nor sums of counters are exact."""

NUMBER_BITS: Final = 8
PLUGIN_BITS: Final = 8
PLACE_BITS: Final = 32
PLUGIN: Final = ((1 << PLUGIN_BITS) - 1) << NUMBER_BITS
"""The bits that name the plug-in."""
PLACE: Final = 1 << (NUMBER_BITS + PLUGIN_BITS)
BLOCK: Final = PLACE << PLACE_BITS


class Problem(NamedTuple):
    """The parts of such a number."""

    sentence: int
    plugin: int
    place: int
    """-1: none."""
    block: int
    """0: the one that answers, or none."""


def read(found: int) -> Problem:
    """Return the parts of a problem that compiled code found."""
    return Problem(
        found % (1 << NUMBER_BITS), found % PLACE >> NUMBER_BITS, found % BLOCK // PLACE - 1, found // BLOCK
    )


@kernel
def of_plugin(word: int, number: int) -> int:
    """Return the problem of a plug-in, which is named by a word of the plan, SOUND if it has none."""
    return SOUND if number == SOUND else number + (word << NUMBER_BITS)


@kernel
def at_place(place: int, found: int) -> int:
    """Return the problem of a node (by its number) or another place of a block, SOUND if it has none."""
    return SOUND if found == SOUND else found + PLACE * (place + 1)


@kernel
def in_block(block: int, found: int) -> int:
    """Return the problem of a block by its number, SOUND if it has none."""
    return SOUND if found == SOUND else found + BLOCK * block
