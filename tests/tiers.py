"""Which tests run when: `make quick`, the gate (`make test`), or everything (`make test-all`); `--tier`.

A marker alone would not do: `-m` of the command line replaces that of the configuration, and would start
hours with `-m "not broker"`.
"""

import os
import subprocess
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
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


GRIDS = Path(__file__).with_name("grids.txt")
"""Tests with many cases, and how many of them the gate runs: a test function, or a file, and a number on each
line.
"""

SEED_VARIABLE = "GROVE_TEST_SEED"


@cache
def seed() -> str:
    """Return the seed of samples: the day of the last commit, so that each day tests other cases.

    A machine without git, or a tree without history, has the seed `none`. GROVE_TEST_SEED names another one.
    """
    if given := os.environ.get(SEED_VARIABLE):
        return given
    command = ["git", "log", "-1", "--format=%cs"]
    try:
        day = subprocess.run(command, cwd=GRIDS.parent, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return day.strip() or "none"


def grids() -> dict[str, int]:
    """Return how many cases of each listed test function or file the gate runs."""
    lines = (line.split() for line in GRIDS.read_text().splitlines() if line and not line.startswith("#"))
    return {name: int(cases) for name, cases in lines}


def sample_grids(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a sample of the cases of each listed test or file, unless the tier is `all` or a case is named."""
    if config.getoption("--tier") == "all" or any("::" in argument for argument in config.args):
        return
    kept_of = grids()
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        name = item.nodeid.partition("[")[0]
        for listed in {name, name.partition("::")[0]} & kept_of.keys():
            cases[listed].append(item)
    left = {item for name, members in cases.items() for item in sorted(members, key=_draw)[kept_of[name] :]}
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]


def keep_share(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the share of all tests that `--share` names, drawn by the seed."""
    share = config.getoption("--share")
    left = [item for item in items if _draw(item)[0] >= share * (1 << 32)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if _draw(item)[0] < share * (1 << 32)]


def _draw(item: pytest.Item) -> tuple[int, str]:
    """Return the place of a case in the order of its sample."""
    return crc32(f"{seed()} {item.nodeid}".encode()), item.nodeid


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
