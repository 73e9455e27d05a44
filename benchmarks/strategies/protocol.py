"""The points that `--check` judges: P1 to P10, the rules of the preset, and the cases that it must not hurt.

The seeds of the protocol, 21 to 25, must not be used to choose anything: parameters and rules of strategies
were chosen on seeds 1 to 5.
"""

from __future__ import annotations

from typing import Final

from benchmarks.strategies.comparisons import Gains, f1, kappa, last_fifth
from benchmarks.strategies.points import Covered, Demand, Paired, Point, Savings, Spent
from benchmarks.strategies.runs import Setting, learner_of
from benchmarks.strategies.streams import STREAMS

ALL_STREAMS: Final = len(STREAMS)
TREE: Final = learner_of("h-tree")
MAJORITY_LEAVES: Final = learner_of('{"name": "h-tree", "leaf_model": "mc"}')
BAYES_LEAVES: Final = learner_of('{"name": "h-tree", "leaf_model": "nb"}')
EAGER: Final = learner_of('{"name": "h-tree", "grace_period": 50, "delta": 0.01, "tau": 0.2}')
FORESTS: Final = {
    name: learner_of(f'{{"name": "{name}", "members": 10}}') for name in ("leveraging-bagging", "arf", "srp")
}
BAGGING: Final = FORESTS["leveraging-bagging"]

FOREST_STREAMS: Final = tuple(name for name in STREAMS if name != "airlines")
"""On airlines, whose two attributes have 293 values, a forest takes a gibibyte, and 0.4 ms a record."""


def mean_of_at_least(points: float, errors: float = 0.0) -> Demand:
    """Demand a mean over the streams of so many points, and of so many of its standard errors."""
    words = f"mean ≥ {points:+}" + (f" and ≥ {errors:g} standard errors" if errors else "")
    return Demand(words, lambda g: g.mean.value >= max(points, errors * g.mean.error if errors else points))


def wins_of_at_least(wins: int) -> Demand:
    """Demand wins on so many of the fourteen streams, and on the same share of those that are there."""
    return Demand(f"≥ {wins} of {ALL_STREAMS} streams won", lambda g: _enough(len(g.wins), wins, g))


def above_on_at_least(streams: int) -> Demand:
    return Demand(f"≥ {streams} of {ALL_STREAMS} streams above", lambda g: _enough(len(g.above), streams, g))


def _enough(count: int, due: int, gains: Gains) -> bool:
    return count * ALL_STREAMS >= due * len(gains.points)


def losses_of_at_most(losses: int) -> Demand:
    return Demand(f"≤ {losses} streams lost", lambda g: len(g.losses) <= losses)


def each_of_at_least(points: float) -> Demand:
    """Demand that the gain of no stream is below so many points."""
    return Demand(
        f"every stream ≥ {points:+}", lambda g: min(mean.value for mean in g.by_stream.values()) >= points
    )


def none_surely_below(points: float) -> Demand:
    return Demand(f"no stream below {points:+} by two standard errors", lambda g: not g.below(points))


NO_HARM: Final = (mean_of_at_least(-0.5), none_surely_below(-0.5))
WORTH_IT: Final = (mean_of_at_least(1.5, 3.0), none_surely_below(-0.5), above_on_at_least(9))
LIMITS: Final = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1)

POINTS: Final[tuple[Point, ...]] = (
    Paired(
        "P1",
        "tree, 10 %: accuracy over random",
        STREAMS,
        Setting(TREE, 0.1),
        (mean_of_at_least(1.2, 3.0), wins_of_at_least(7), losses_of_at_most(1), each_of_at_least(-1.5)),
    ),
    Paired(
        "P2",
        "tree, 10 %: the last fifth",
        STREAMS,
        Setting(TREE, 0.1),
        (mean_of_at_least(1.0, 2.0),),
        measure=last_fifth,
    ),
    Paired(
        "P3",
        "leveraging bagging, 10 %",
        FOREST_STREAMS,
        Setting(BAGGING, 0.1),
        (mean_of_at_least(1.5, 3.0), wins_of_at_least(9), losses_of_at_most(0)),
    ),
    Paired(
        "P4",
        "tree: 5 % chosen over 10 % at random",
        STREAMS,
        Setting(TREE, 0.05),
        (
            mean_of_at_least(-0.2),
            Demand("not surely below on 3 of 4 streams", lambda g: 4 * len(g.losses) <= len(g.points)),
        ),
        beside=Setting(TREE, 0.1),
    ),
    Paired(
        "P5",
        "rare class, leveraging bagging, 5 %: kappa",
        ("mnist-8", "rbf-imb"),
        Setting(BAGGING, 0.05),
        (each_of_at_least(10.0),),
        measure=kappa,
    ),
    Paired(
        "P6",
        "control: a score that is the same for all records of a leaf, tree, 10 %",
        STREAMS,
        Setting(TREE, 0.1),
        (Demand("within ± 0.3", lambda g: abs(g.mean.value) <= 0.3),),
        strategy="ask, leaf share",
    ),
    Spent("P7", "tree, 10 %: the budget is spent, and seldom closed", STREAMS, Setting(TREE, 0.1)),
    Paired(
        "P8",
        "tree, 10 %, labels late by 2,000 records",
        ("rbf",),
        Setting(TREE, 0.1, delay=2000),
        (mean_of_at_least(1.0),),
    ),
    Covered("P9", "coverage of accuracy_unbiased, 5 %", "rbf", Setting(TREE, 0.05), 200, 6_000, 0.93),
    Paired("P10", "tree, 2 %: no harm", STREAMS, Setting(TREE, 0.02), (mean_of_at_least(-0.3),)),
    Paired("tree", "tree, 10 %: worth it", STREAMS, Setting(TREE, 0.1), WORTH_IT),
    *(
        Paired(name, f"{name}, 10 %: worth it", FOREST_STREAMS, Setting(learner, 0.1), WORTH_IT)
        for name, learner in FORESTS.items()
    ),
    Savings(
        "savings",
        "tree: labels for the accuracy of random requests at 10 %",
        STREAMS,
        [Setting(TREE, limit) for limit in LIMITS],
        0.05,
    ),
    Paired(
        "rare-kappa",
        "rare class, leveraging bagging, 5 %: kappa as in the study",
        ("mnist-8", "rbf-imb"),
        Setting(BAGGING, 0.05),
        (none_surely_below(21.0),),
        measure=kappa,
    ),
    Paired(
        "rare-f1",
        "rare class, leveraging bagging, 5 %: F1",
        ("mnist-8", "rbf-imb"),
        Setting(BAGGING, 0.05),
        (each_of_at_least(10.0),),
        measure=f1,
    ),
    Paired("elec", "guard: electricity, tree, 10 %", ("elec",), Setting(TREE, 0.1), NO_HARM),
    Paired(
        "elec-end",
        "guard: electricity, tree, 10 %, the last fifth",
        ("elec",),
        Setting(TREE, 0.1),
        NO_HARM,
        measure=last_fifth,
    ),
    Paired("majority", "guard: majority leaves, 10 %", STREAMS, Setting(MAJORITY_LEAVES, 0.1), NO_HARM),
    Paired("eager", "guard: an eager tree, 10 %", STREAMS, Setting(EAGER, 0.1), NO_HARM),
    Paired("few", "guard: tree, 1 %", STREAMS, Setting(TREE, 0.01), NO_HARM),
    Paired(
        "prior",
        "guard: Bayes leaves on a rare class, 10 %",
        ("agrawal-imb", "a9a-5"),
        Setting(BAYES_LEAVES, 0.1),
        NO_HARM,
    ),
    Paired(
        "many-classes",
        "guard: leveraging bagging on ten classes, 2 %, the last fifth",
        ("mnist20", "led"),
        Setting(BAGGING, 0.02),
        NO_HARM,
        measure=last_fifth,
    ),
    *(
        Paired(
            f"late-{delay}",
            f"tree, 10 %, labels late by {delay:,} records, a tenth lost",
            STREAMS,
            Setting(TREE, 0.1, delay, 0.1),
            NO_HARM,
        )
        for delay in (0, 1000, 5000)
    ),
)
"""All points; a point that needs a missing stream is judged on the others."""
