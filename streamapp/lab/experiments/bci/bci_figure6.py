"""BCI, Figure 6: test risk on four data sets against labels, BOCT and BOCT-AL beside Hoeffding and C4.5.

The paper names only Diabetes of the four sets; Ionosphere, Sonar and Heart (Statlog) are our choice [D63].
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.layout.model import Floats
from streamapp.errors import UsageError
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.bci.bci_curves import (
    DELTAS,
    HOEFFDING_DELTAS,
    Claim,
    best_deltas,
    cells_of,
    claims_table,
    is_least,
    merged,
    pairs_of,
    sparse,
    summed,
    thinned,
)
from streamapp.lab.experiments.bci.bci_toy import BY_EXCESS
from streamapp.lab.experiments.bci.boct_runs import BoctRuns, pick_each
from streamapp.lab.experiments.chart import Axis, Chart, Line
from streamapp.lab.pool.pool_models import TOTAL
from streamapp.lab.pool.pool_protocol import PICK, Records, label_pool, split
from streamapp.lab.pool.pool_specs import maker_of

TITLE = "BCI (Bayesian Credible Intervals), Figure 6: test risk on real data against labels"
HOURS: Final[dict[Size, float]] = {"full": 0.6}
"""Hours of one core."""

FILES: Final = {
    "diabetes": "diabetes.arff.gz",
    "ionosphere": "ionosphere.arff.gz",
    "sonar": "sonar.arff.gz",
    "heart": "heart.statlog.arff.gz",
}
NAMED: Final = "diabetes"
"""The set that the paper names."""
SYSTEMS: Final = ("c4.5", "Hoeffding", "BOCT", "BOCT-AL")
COMPARED: Final = (*SYSTEMS, BY_EXCESS)
"""The last system is not in the paper; it uses the δ that BOCT-AL is tuned to."""
TEST_SHARE: Final = 0.5
SHARES_SHOWN: Final = (0.1, 0.25, 0.5, 0.75, 1.0)

# Values of the grids, runs to tune on, runs, points of a curve (None: one for each label)
SETTINGS: dict[Size, tuple[int, int, int, int | None]] = {
    "quick": (2, 1, 2, 10),
    "medium": (7, 20, 300, 50),
    "full": (13, 100, 1000, None),
}


def found(data: Path | None) -> list[str]:
    """Return the sets whose files are in a folder; UsageError if there are none."""
    here = [name for name, file in FILES.items() if data is not None and (data / file).is_file()]
    if not here:
        files = ", ".join(FILES.values())
        message = f"--datasets {data} must be a folder with some of {files} (GROVE_DATASETS names it too)"
        raise UsageError(message)
    return here


def grid_of(system: str, values: int) -> list[list[float]]:
    """Return the parameters over which a system is tuned; C4.5 has none."""
    if system == "c4.5":
        return [[]]
    if system == "Hoeffding":
        return [[value] for value in thinned(HOEFFDING_DELTAS, values)]
    grid = thinned(DELTAS, values)
    return pairs_of(grid, grid) if system == "BOCT-AL" else [[value] for value in grid]


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return the runs that tune each system on each set; C4.5 is not tuned."""
    values, runs, _, points = SETTINGS[size]
    return [
        cell
        for name in found(data)
        for system in SYSTEMS[1:]
        for deltas in grid_of(system, values)
        for cell in cells_of(_common(name, system, data, points), "tune", deltas, runs)
    ]


def then(size: Size, data: Path | None, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return fresh runs of each system with the best parameters for the set."""
    _, _, runs, points = SETTINGS[size]
    return [
        cell
        for name in found(data)
        for system in COMPARED
        for cell in cells_of(_common(name, system, data, points), "compare", _tuned(rows, name, system), runs)
    ]


def _tuned(rows: Sequence[Row], name: str, system: str) -> list[float]:
    """Return the parameters of a system on a set."""
    if system == "c4.5":
        return []
    return best_deltas(rows, set=name, system="BOCT-AL" if system == BY_EXCESS else system)


def _common(name: str, system: str, data: Path | None, points: int | None) -> dict[str, Any]:
    return {"set": name, "system": system, "folder": str(data), "points": points}


@functools.lru_cache(maxsize=4)
def load(name: str, data: Path) -> Records:
    from streamapp.lab.pool.pool_run import read_records
    from topics.readers import open_dataset

    records, _ = read_records(open_dataset([data / FILES[name]]))
    return records


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Label the pool of a set until it is empty, once for each seed of the cell."""
    records = load(cell["set"], Path(cell["folder"]))
    size = len(records.y) - round(len(records.y) * TEST_SHARE)
    judged = list(range(1, size + 1)) if cell["points"] is None else sparse(cell["points"], size)
    seeds = range(cell["seed"], cell["seed"] + cell["runs"])
    if cell["system"] == "c4.5":
        return summed([_batch_curve(records, seed, judged) for seed in seeds], judged)
    return summed(boct_curves(records, cell["system"], cell["deltas"], seeds, judged), judged)


def _batch_curve(records: Records, seed: int, judged: Sequence[int]) -> Floats:
    """Return the risks of C4.5 at some label counts, ascending, the last of them the pool's size."""
    pool_rows, test_rows = split(len(records.y), TEST_SHARE, seed)
    pool, test = records.part(pool_rows), records.part(test_rows)
    system = maker_of("c4.5")(records.schema, pool.x)
    curve = label_pool(system, pool, test, judged[-1], seed, judged)
    return np.array([1.0 - point.accuracy for point in curve])


def boct_curves(
    records: Records, system: str, deltas: Sequence[float], seeds: Sequence[int], judged: Sequence[int]
) -> Floats:
    """Return the risks of BOCT with each seed, side by side; float64[seed, len(judged)].

    Each run is the run that ``label_pool`` makes of the system's spec. judged: label counts, ascending.
    """
    rows = [split(len(records.y), TEST_SHARE, seed) for seed in seeds]
    pools, tests = np.array([pool for pool, _ in rows]), np.array([test for _, test in rows])
    learner: dict[str, Any] = {"name": "boct", "sizes": "pool", "delta": deltas[0]}
    if system == "Hoeffding":
        learner["bound"] = "hoeffding"
    delta2 = deltas[1] if system in ("BOCT-AL", BY_EXCESS) else None
    risk = "mbinomial" if system == BY_EXCESS else TOTAL
    runs = BoctRuns(learner, records.schema, records.x[pools], records.x[tests], delta2, risk)
    drawn = np.array(
        [np.random.default_rng([seed, 1]).random((pools.shape[1], 2))[:, PICK] for seed in seeds]
    )
    unlabelled = [np.arange(pools.shape[1])] * len(seeds)
    judged_counts = frozenset(judged)
    risks = []
    for labels in range(1, judged[-1] + 1):
        ranked = unlabelled
        if delta2 is not None:
            ranked = [runs.in_riskiest_leaf(run, own) for run, own in enumerate(unlabelled)]
        chosen = pick_each(ranked, drawn[:, labels - 1])
        runs.learn(chosen, records.y[pools[np.arange(len(seeds)), chosen]])
        unlabelled = [own[own != row] for own, row in zip(unlabelled, chosen.tolist(), strict=True)]
        if labels in judged_counts:
            risks.append(1.0 - (runs.predict() == records.y[tests]).mean(axis=1))
    return np.ascontiguousarray(np.transpose(risks))


def report(rows: Sequence[Row]) -> Report:
    """Return risks at shares of the pool for each set, the claims, and a chart for each set."""
    result = Report(tables={"figure6": [], "figure6-claims": []})
    compared = [row for row in rows if row["stage"] == "compare"]
    finals: dict[str, dict[str, tuple[list[int], Floats, Floats, int]]] = {}
    for name in dict.fromkeys(row["set"] for row in compared):
        curves = {
            system: merged([row for row in compared if row["set"] == name and row["system"] == system])
            for system in COMPARED
        }
        finals[name] = curves
        for system, (labels, mean, spread, runs) in curves.items():
            deltas = next(row["deltas"] for row in compared if row["set"] == name and row["system"] == system)
            line: dict[str, Any] = {
                "set": name,
                "system": system,
                "δ": ", ".join(f"{value:g}" for value in deltas) or "-",
                "runs": runs,
                "pool": labels[-1],
                "mean": round(float(mean.mean()), 4),
            }
            for share in SHARES_SHOWN:
                at = int(np.abs(np.array(labels) - share * labels[-1]).argmin())
                line[f"{share:.0%}"] = f"{mean[at]:.4f} ± {spread[at]:.4f}"
            result.tables["figure6"].append(line)
        result.charts[f"figure6-{name}"] = Chart(
            name,
            Axis("number of labeled instances"),
            Axis("risk on the test set"),
            tuple(
                Line(system, tuple(zip(map(float, labels), mean.tolist(), strict=True)))
                for system, (labels, mean, _, _) in curves.items()
            ),
        )
    result.tables["figure6-claims"] += claims_table(claims(finals))
    return result


def claims(curves: dict[str, dict[str, tuple[list[int], Floats, Floats, int]]]) -> list[Claim]:
    """Return the claims of section VI on the figure, which contradict each other, with our results."""

    def at(name: str, system: str, position: int) -> tuple[float, float]:
        _, mean, spread, runs = curves[name][system]
        return float(mean[position]), float(spread[position] / np.sqrt(runs))

    def least(name: str, first: str, second: str, position: int = -1) -> bool:
        return is_least(*at(name, first, position), *at(name, second, position))

    def level(name: str, first: str, second: str, position: int) -> bool:
        return least(name, first, second, position) and least(name, second, first, position)

    def said(first: str, second: str, position: int = -1) -> str:
        return "; ".join(
            f"{name} {at(name, first, position)[0]:.4f} / {at(name, second, position)[0]:.4f}"
            for name in curves
        )

    def means(first: str, second: str) -> str:
        return "; ".join(
            f"{name} {curve[first][1].mean():.4f} / {curve[second][1].mean():.4f}"
            for name, curve in curves.items()
        )

    first_tenth = {name: max(len(curve["BOCT"][0]) // 10, 1) for name, curve in curves.items()}
    early = "; ".join(
        f"{name} {curve['c4.5'][1][: first_tenth[name]].mean():.4f} / "
        f"{curve['BOCT'][1][: first_tenth[name]].mean():.4f}"
        for name, curve in curves.items()
    )
    equal = [name for name in curves if level(name, "BOCT", "c4.5", -1)]
    higher = [name for name in curves if name not in equal and least(name, "c4.5", "BOCT")]
    lower = [name for name in curves if name not in equal and name not in higher]
    claimed: list[Claim] = [
        (
            "BOCT is always better than the Hoeffding version (final risk)",
            "VI d",
            all(least(name, "BOCT", "Hoeffding") for name in curves),
            "BOCT / Hoeffding: " + said("BOCT", "Hoeffding"),
        ),
        (
            "Hoeffding fails to reach BOCT or c4.5 on three of four sets",
            "VI d",
            sum(not (least(name, "Hoeffding", "BOCT") or least(name, "Hoeffding", "c4.5")) for name in curves)
            == 3,
            "Hoeffding / c4.5: " + said("Hoeffding", "c4.5"),
        ),
        (
            "the final risks of BOCT and c4.5 are equal on two sets and higher for BOCT on two",
            "VI d, third sentence",
            len(equal) == 2 and len(higher) == 2,
            f"equal: {', '.join(equal) or 'none'}; BOCT higher: {', '.join(higher) or 'none'}; "
            f"BOCT lower: {', '.join(lower) or 'none'}",
        ),
        (
            "BOCT attains final performances comparable to c4.5 and even better",
            "VI d, two paragraphs on",
            not higher,
            "BOCT / c4.5: " + said("BOCT", "c4.5"),
        ),
        (
            "the initial performances are always better for c4.5 (first tenth of the labels)",
            "VI d",
            all(
                curve["c4.5"][1][: first_tenth[name]].mean() < curve["BOCT"][1][: first_tenth[name]].mean()
                for name, curve in curves.items()
            ),
            "c4.5 / BOCT: " + early,
        ),
        (
            "BOCT-AL is slightly better than BOCT (mean over the run)",
            "VI d",
            all(curve["BOCT-AL"][1].mean() <= curve["BOCT"][1].mean() for curve in curves.values()),
            "BOCT-AL / BOCT: " + means("BOCT-AL", "BOCT"),
        ),
        (
            "BOCT-AL has exactly the risk of BOCT at the beginning",
            "VI d",
            all(level(name, "BOCT-AL", "BOCT", 0) for name in curves),
            "BOCT-AL / BOCT: " + said("BOCT-AL", "BOCT", 0),
        ),
        (
            "BOCT-AL has the risk of BOCT at the end",
            "VI d",
            all(level(name, "BOCT-AL", "BOCT", -1) for name in curves),
            "BOCT-AL / BOCT: " + said("BOCT-AL", "BOCT"),
        ),
    ]
    if NAMED in curves:
        claimed.insert(
            2,
            (
                "on Diabetes Hoeffding is as good as c4.5, and BOCT is better",
                "VI d",
                least(NAMED, "Hoeffding", "c4.5") and least(NAMED, "BOCT", "Hoeffding"),
                "; ".join(f"{system} {at(NAMED, system, -1)[0]:.4f}" for system in SYSTEMS[:3]),
            ),
        )
    return claimed
