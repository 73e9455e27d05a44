"""Quirks: named differences of published code from this implementation; ``compat`` selects them.

A plan has them in one word (``plan.quirks``), whose named bits kernels and learners test. To understand an
algorithm, skip the code that a quirk guards: without ``compat`` no quirk is active.
"""

from __future__ import annotations

from typing import Final

STOPS_AT_MISSING: Final = 1 << 0
ABSENT_BRANCHES: Final = 1 << 1
EMPTY_VOTES: Final = 1 << 2
MULTIPLIED_DENSITIES: Final = 1 << 3
ROUNDED_MASSES: Final = 1 << 4
MERIT_OF_NULL: Final = 1 << 5
LAST_OF_EQUALS: Final = 1 << 6
SUGGESTS_UNFIT: Final = 1 << 7
EMPTY_VALUES: Final = 1 << 8
TESTS_AGAIN: Final = 1 << 9
INHERITED_COUNTS: Final = 1 << 10
RANGE_OF_NODE: Final = 1 << 11
PERIOD_OF_TREE: Final = 1 << 12
REVISED_IS_NEW: Final = 1 << 13
REPLACES_ONLY: Final = 1 << 14
USED_ABOVE: Final = 1 << 15
KEEPS_BACKGROUND: Final = 1 << 16
FOLLOWED_IMPURITY: Final = 1 << 17
EXCHANGES_ONLY: Final = 1 << 18
COLD_STARTS: Final = 1 << 19
NOTHING_INHERITED: Final = 1 << 20
CLASS_COUNTED: Final = 1 << 21
LAST_OF_TWO: Final = 1 << 22
SPLIT_TAKES_OVER: Final = 1 << 23
SILENT_AT_MISSING: Final = 1 << 24

MEANINGS: Final[dict[int, str]] = {
    STOPS_AT_MISSING: (
        "A record ends at the inner node that cannot place its value, and that node does not learn from it."
    ),
    ABSENT_BRANCHES: "A branch for a value without records does not exist until the value is learned.",
    EMPTY_VOTES: "A leaf without weight has no votes instead of its parent's; naive Bayes predicts class 0.",
    MULTIPLIED_DENSITIES: (
        "Naive Bayes multiplies densities, which may underflow, instead of adding logarithms."
    ),
    ROUNDED_MASSES: (
        "The density at a threshold is subtracted from a Gaussian's mass below it and added again, with "
        "rounding."
    ),
    MERIT_OF_NULL: (
        "The null split has a merit and may be the best; a leaf without another candidate is made again."
    ),
    LAST_OF_EQUALS: "The last of equal merits is the best, and a merit that is NaN is above all numbers.",
    SUGGESTS_UNFIT: "A test with a branch that is too small is suggested, with a merit of minus infinity.",
    EMPTY_VALUES: "Values and branches without weight are suggested too; Gini divides by their weight.",
    TESTS_AGAIN: "An attribute that has a branch for each value above may be tested again.",
    INHERITED_COUNTS: (
        "Schedules count class masses with inherited mass, and take the classes of a node from them."
    ),
    RANGE_OF_NODE: (
        "The range of merits depends on the classes with votes at the node, not on all known classes."
    ),
    PERIOD_OF_TREE: "Evaluations of inner nodes have a period in records of the tree, not of the node.",
    REVISED_IS_NEW: (
        "A node that gets a test counts its evaluations from 0 again, but keeps their sums of merits."
    ),
    REPLACES_ONLY: "A revision neither prunes nor moves a threshold, and needs no merit above 0.",
    USED_ABOVE: "A nominal test of an attribute that is marked as used above is not installed.",
    KEEPS_BACKGROUND: "A background tree stays when its warning ends; the next warning starts another tree.",
    FOLLOWED_IMPURITY: (
        "Each record updates the merits of candidates; masses below 1 count as 1, and the common term is "
        "left out."
    ),
    EXCHANGES_ONLY: (
        "A new candidate only replaces an old one; an attempt chooses 2 if the usual number is more than "
        "half of all tests."
    ),
    COLD_STARTS: "A leaf of one class that is due for its first candidates waits for another cold start.",
    NOTHING_INHERITED: "No node inherits weight or keeps it under a test, so that a new leaf has no votes.",
    CLASS_COUNTED: "Bounds count the class as one more attribute.",
    LAST_OF_TWO: "The second of two classes with equal weight in a leaf wins.",
    SPLIT_TAKES_OVER: (
        "An alternate tree replaces its node as soon as its leaf would split, with or without proof."
    ),
    SILENT_AT_MISSING: "No leaf votes if a value is missing, and a branch that does not exist never grows.",
}
"""The meaning of each quirk, in the order of the bits."""

MOA: Final = NOTHING_INHERITED - 1
"""All quirks before it: MOA's tree, on which the codes of IMAC and CDT are built, and IMAC's candidates."""

MOA_ADAPTIVE: Final = MOA | SPLIT_TAKES_OVER | SILENT_AT_MISSING
"""The quirks of MOA's adaptive trees."""

OF_COMPAT: Final[dict[str | None, int]] = {
    None: 0,
    "moa": MOA,
    "imac": MOA | NOTHING_INHERITED,
    "cdt": MOA | CLASS_COUNTED | LAST_OF_TWO,
}
"""The quirks of each ``compat``."""
