"""Random subsets: m of n attributes without replacement, or so that few of them come twice."""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel
from core.numeric import rng

FEW: Final = 20
"""Maximum of attributes whose subsets are all counted (MOA's limit)."""
APART_DRAW: Final = 1 << 15
"""Counter of the random numbers of ``choose_apart``, shared by all trees; single trees use smaller ones."""


@kernel
def choose(key: rng.Key, first: int, n: int, m: int, chosen) -> None:
    """Choose m of n without replacement (Bentley and Floyd 1987); chosen: float64[n], 1.0 where chosen."""
    for a in range(n):
        chosen[a] = 0.0
    for j in range(n - m, n):
        drawn = rng.integer(key, first + j, j + 1)
        if chosen[drawn] == 0.0:
            chosen[drawn] = 1.0
        else:
            chosen[j] = 1.0


@kernel
def choose_apart(key: rng.Key, number: int, n: int, m: int, chosen) -> None:
    """Choose m of n so that numbers 0, 1, … have different subsets until all are used; n: at most FEW.

    Subsets in lexicographic order have ranks. The rank for a number is (a·number + b) mod C, where C is the
    number of subsets, a and b are random, and a has no common divisor with C. All subsets are equally likely.
    """
    subsets = 1  # C
    for j in range(m):
        subsets = subsets * (n - m + j + 1) // (j + 1)
    draw, step = 1, 1 + rng.integer(key, 0, subsets)
    while not is_coprime(step, subsets):
        step = 1 + rng.integer(key, draw, subsets)
        draw += 1
    rank = (step * number + rng.integer(key, APART_DRAW, subsets)) % subsets
    to_choose, after = m, n - 1  # attributes to choose, and attributes after the next one
    with_it = subsets * m // n  # remaining subsets with the next attribute
    for a in range(n):
        is_chosen = to_choose > 0 and rank < with_it
        chosen[a] = 1.0 if is_chosen else 0.0
        if is_chosen:
            with_it = with_it * (to_choose - 1) // max(after, 1)
            to_choose -= 1
        else:
            rank -= with_it
            with_it = with_it * (after - to_choose + 1) // max(after, 1)
        after -= 1


@kernel
def is_coprime(a: int, b: int) -> bool:
    """Return whether two numbers above 0 have no common divisor except 1."""
    while b != 0:
        a, b = b, a % b
    return a == 1
