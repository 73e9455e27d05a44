"""Which tests run when: `make quick`, the gate (`make test`), or everything (`make test-all`); `--tier`.

A marker alone would not do: `-m` of the command line replaces that of the configuration, and would start
hours with `-m "not broker"`.
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from zlib import crc32

import hypothesis
import pytest
from _pytest.mark.structures import ParameterSet

EXAMPLES = {"quick": 10, "gate": 100, "all": 1000}
"""How many examples hypothesis makes of a property that asks for a hundred."""
LATE = 0.9  # the share of a run in which tests with a broker begin: a long one at the end would be waited for


# The gate decides alike about the same commit, on every machine. What the night finds, with examples of its
# own, is printed as a line to paste (`@reproduce_failure`) and kept in .hypothesis/ for the next run there.
for _tier, _examples in EXAMPLES.items():
    hypothesis.settings.register_profile(
        _tier,
        max_examples=_examples,
        deadline=None,
        print_blob=True,
        derandomize=_tier != "all",
        suppress_health_check=[hypothesis.HealthCheck.too_slow],  # a busy machine is no fault of a strategy
    )


def examples(n: int) -> int:
    """Return how many examples the tier makes where the gate makes `n`."""
    return max(1, n * hypothesis.settings().max_examples // EXAMPLES["gate"])


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not of the tier, unless it is named by its id."""
    markers = {"quick": ("nightly", "broker"), "gate": ("nightly",), "all": ()}[config.getoption("--tier")]
    named = tuple(argument for argument in config.args if "::" in argument)
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        outside = any(item.get_closest_marker(name) for name in markers)
        (left if outside and not item.nodeid.startswith(named) else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def give_time(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let a property take as much longer as it has more examples, if it has no limit of its own."""
    times = hypothesis.settings().max_examples // EXAMPLES["gate"]
    for item in items if times > 1 else ():
        if _is_property(item) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(times * float(config.getini("timeout"))))


def _is_property(item: pytest.Item) -> bool:
    return bool(getattr(getattr(item, "obj", None), "is_hypothesis_test", False))


def mix(items: list[pytest.Item]) -> None:
    """Spread the tests that wait for a broker among those that compute, each kind in its order."""
    waiting = [item for item in items if item.get_closest_marker("broker")]
    computing = [item for item in items if not item.get_closest_marker("broker")]
    places = [(LATE * i / len(waiting), 0, i) for i in range(len(waiting))]
    places += [(i / len(computing), 1, i) for i in range(len(computing))]
    kinds = (waiting, computing)
    items[:] = [kinds[kind][i] for _, kind, i in sorted(places)]


def pairwise(cases: Iterable[Sequence[Hashable]]) -> list[ParameterSet]:
    """Return all cases as parameters: those of the gate show every pair of values, the others are nightly.

    Greedy: next is the case with most pairs that none before it had; among equals chance, always the same.
    """
    pairs = {tuple(case): set(combinations(enumerate(case), 2)) for case in cases}
    order = sorted(pairs, key=lambda case: crc32(repr(case).encode()))
    gate, seen = set(), set[object]()
    while new := {case: len(pairs[case] - seen) for case in order if not pairs[case] <= seen}:
        best = max(new, key=new.__getitem__)
        gate.add(best)
        seen |= pairs[best]
    return [pytest.param(*case, marks=() if case in gate else pytest.mark.nightly) for case in pairs]
