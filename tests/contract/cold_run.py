"""A representative run of the task after `warm`: prints what happened in it, and what was compiled, as JSON.

Run as a program by test_warm.py, because what one test has compiled stays compiled for the others.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from core import registry
from core.errors import SpecError
from core.layout.learning import LEAVES
from core.learners.hoeffding.learner import AXES
from core.spec import Spec
from streamapp.worker.compile_ahead import warm_kernels

RECORDS = 1_200


def specs() -> Iterator[dict[str, Any]]:
    """Yield a spec for every plug-in of every family, by its name alone."""
    yield from ({"learner": name, "drift": "ddm"} for name in registry.names("learners"))
    tree = {"name": "h-tree", "grace_period": 50, "delta": 0.01, "tau": 0.1}
    families = {"query": "queries", "budget": "budgets", "drift": "drift", "calibration": "calibrators"}
    for part, family in families.items():
        for name in registry.names(family):
            leafy = part == "query" and registry.plugin(family, name)().columns & LEAVES
            yield {"learner": "boct" if leafy else tree, part: name}
    for axis, family in AXES.items():
        for name in registry.names(family):
            spec = {"learner": {**tree, axis: name}, "query": "always"}
            try:
                Spec.parse(spec)
            except SpecError:
                continue  # an observer of the other kind, or an axis this learner has not
            yield spec


def run(spec: dict[str, Any]) -> Counter[str]:
    """Answer, ask, learn, drift, evaluate, command, snapshot: one model from its first record on."""
    from core.model.model import Model
    from tests.topology.partition import Partition, config

    given = {"evaluation": {"every": 100, "window": 50}} | spec
    partition = Partition(config(given, pending_keep="all"))
    if spec.get("learner") == "ufodt":  # it has to know between which values numbers lie
        named = [{"name": "x", "range": [0, 1]}, {"name": "y", "range": [0, 1], "cost": 2}]
        colours = {"name": "c", "kind": "nominal", "values": ["red", "blue"]}
        partition.control("create", schema={"attributes": [*named, colours]})
    rng = np.random.default_rng(1)
    for start in range(0, RECORDS, 100):
        turned = start >= RECORDS // 2
        rows = []
        for i in range(start, start + 100):
            x, y = rng.random(2).tolist()
            colour = "red" if rng.random() < 0.5 else "blue"
            label = "ab"[int((x > 0.5) != turned)]
            rows.append({"id": str(i), "features": {"x": x, "y": y, "c": colour}, "truth": label})
        labelled, asked = rows[:60], rows[60:]
        partition.instances(*({**row, "label": row["truth"]} for row in labelled))
        partition.instances(*asked)
        partition.labels(*({"id": request["id"], "label": request["truth"]} for request in asked[:30]))
        partition.labels({"id": asked[30]["id"], "declined": True})
    model = partition.model()
    restored = Model.restore(model.snapshot())
    assert restored.snapshot() == model.snapshot()
    for command in ("freeze", "reset", "delete"):
        partition.control(command)
    assert partition.dead_letters == []
    alerts = Counter(f"alerts.{sent.json['level']}" for sent in partition.sent["drift-alerts"])
    return partition.task.counters + alerts + Counter(evaluations=len(partition.sent["evaluations"]))


def main(given: str) -> int:
    """Print what happened, and the name of every function that numba compiled after `warm`.

    given: a spec, for which alone kernels are warmed and which alone runs; "": all.
    """
    from numba.core import event

    warm_kernels(*([Spec.parse(given)] if given else []))
    recorder = event.RecordingListener()
    event.register("numba:compile", recorder)
    chosen = [json.loads(given)] if given else specs()
    happened = sum((run(spec) for spec in chosen), Counter[str]())
    compiled = {done.data["dispatcher"].py_func for _, done in recorder.buffer}
    names = sorted(f"{function.__module__}.{function.__qualname__}" for function in compiled)
    json.dump({"happened": happened, "compiled": names}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main("".join(sys.argv[1:])))
