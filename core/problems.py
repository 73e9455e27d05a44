"""Problems of a foreign buffer as one number, so that compiled code can return them.

From the lowest bits on: the number of a sentence (from 1 on; 0: sound); the word of the plan with the kind of
the plug-in that owns the sentence (0: the frame); the place in a block plus one (0: none); the block.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from core.kernels.jit import kernel

SOUND: Final = 0
MOST: Final = 1 << 53
"""Largest counter: above it floats and sums of counters are no longer exact."""

NUMBER_BITS: Final = 8
PLUGIN_BITS: Final = 8
PLACE_BITS: Final = 32
PLUGIN: Final = ((1 << PLUGIN_BITS) - 1) << NUMBER_BITS
"""The bits that identify the plug-in."""
PLACE: Final = 1 << (NUMBER_BITS + PLUGIN_BITS)
BLOCK: Final = PLACE << PLACE_BITS


class Problem(NamedTuple):
    """The parts of a problem's number."""

    sentence: int
    plugin: int
    place: int
    """-1: none."""
    block: int
    """0: the block that answers, or none."""


def read(found: int) -> Problem:
    """Split the number of a problem that compiled code returned into its parts."""
    return Problem(
        found % (1 << NUMBER_BITS), found % PLACE >> NUMBER_BITS, found % BLOCK // PLACE - 1, found // BLOCK
    )


@kernel
def of_plugin(word: int, number: int) -> int:
    """Return the problem of the plug-in whose kind is in a word of the plan, SOUND if ``number`` is 0."""
    return SOUND if number == SOUND else number + (word << NUMBER_BITS)


@kernel
def at_place(place: int, found: int) -> int:
    """Add a node (by its number) or another place of a block to a problem; SOUND stays SOUND."""
    return SOUND if found == SOUND else found + PLACE * (place + 1)


@kernel
def in_block(block: int, found: int) -> int:
    """Add a block, by its number, to a problem; SOUND stays SOUND."""
    return SOUND if found == SOUND else found + BLOCK * block
