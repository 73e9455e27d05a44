"""Quirks: named differences of published code from this implementation; ``compat`` selects them.

A plan has them in one word (``PLAN_QUIRKS``), whose named bits kernels and learners test. To understand an
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
    STOPS_AT_MISSING: "A record ends at the inner node that cannot place its value, and teaches it nothing.",
    ABSENT_BRANCHES: "A branch by value that no class touches does not exist until its value is learned.",
    EMPTY_VOTES: "A leaf without weight votes nothing, not as its parent; naive Bayes then says class 0.",
    MULTIPLIED_DENSITIES: "Naive Bayes multiplies densities, which may underflow, and adds no logarithms.",
    ROUNDED_MASSES: "A Gaussian's mass below a threshold loses the density there and gets it back, rounded.",
    MERIT_OF_NULL: "Not to split has a merit and may be best; a leaf where it is alone begins anew.",
    LAST_OF_EQUALS: "Of equal merits the last is best, and what is no number beats all.",
    SUGGESTS_UNFIT: "A test with a branch that is too small is suggested, with a merit of minus infinity.",
    EMPTY_VALUES: "Values and branches without weight are suggested too; Gini divides by their weight.",
    TESTS_AGAIN: "An attribute that has a branch for each value above may be tested again.",
    INHERITED_COUNTS: "Schedules count class masses, inherited ones too, and by them the classes met.",
    RANGE_OF_NODE: "The range of merits is of the classes a node has votes for, not of all that are known.",
    PERIOD_OF_TREE: "Inner nodes are evaluated at every so many records of the tree, not of the node.",
    REVISED_IS_NEW: "A node that gets a test counts its evaluations anew, but keeps their sums of merits.",
    REPLACES_ONLY: "A revision neither prunes nor moves a threshold, nor asks for a merit above 0.",
    USED_ABOVE: "A nominal test of an attribute that is remembered as used above is not installed.",
    KEEPS_BACKGROUND: "A warning that passes leaves its background tree; the next warning begins another.",
    FOLLOWED_IMPURITY: "Candidates' merits follow each record, masses below 1 as 1, less what all share.",
    EXCHANGES_ONLY: "A new candidate needs another's place; if more were half of all tests, two are chosen.",
    COLD_STARTS: "A leaf of one class that is due for its first candidates waits for another cold start.",
    NOTHING_INHERITED: "No node inherits weight or keeps it under a test, so that a new leaf votes nothing.",
    CLASS_COUNTED: "The class counts as one attribute more in bounds.",
    LAST_OF_TWO: "Of two classes with equal weight in a leaf the second wins.",
    SPLIT_TAKES_OVER: "An alternate tree takes its node's place once its leaf would split, proven or not.",
    SILENT_AT_MISSING: "Where a value is missing nobody votes, and a branch that does not exist never grows.",
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
