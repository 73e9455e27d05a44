"""Warming: a worker whose spec buys features compiles nothing any more when it buys."""

from __future__ import annotations

import subprocess
import sys

import pytest

from core.kernels import jit

BUYS = """
import json, sys
from core.kernels import jit
from core.kernels.native.inner_kernel import InnerKernel
from core.spec import Spec
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.compile_ahead import warm_kernels
from topics.columns.records import RawRecords

def refuse(self, *arguments):
    if getattr(self, "_call", None) is None:
        sys.exit(f"{self.__wrapped__.__module__}.{self.__wrapped__.__qualname__} was not ready")

def run(task, source, *documents):
    values = [json.dumps(document).encode() for document in documents]
    n, at = len(values), run.offset
    run.offset += n
    times = [1_700_000_000_000 + at + i for i in range(n)]
    raw = RawRecords(source, 0, list(range(at, at + n)), times, [b"m"] * n, values, [()] * n)
    return task.process(TaskRun(source, raw))

run.offset = 0
specs = [json.loads(given) for given in sys.argv[1:]]
for spec in specs:
    warm_kernels(Spec.parse(spec))
jit._Entry.compile, InnerKernel.__call__ = refuse, refuse
schema = {"attributes": [{"name": name, "range": [0, 1]} for name in "xy"], "classes": ["a", "b"]}
for spec in specs:
    task = Task(0, TaskConfig())
    made = run(task, "controls", {"command": "create", "spec": spec, "schema": schema})
    assert not made.dead_letters, made.dead_letters
    for number in range(40):
        features = {"x": number % 7 / 7, "y": 0.5}
        label = "a" if number % 7 > 3 else "b"
        run(task, "instances", {"id": f"t{number}", "features": features, "label": label})
    asked = run(task, "instances", {"id": "buys", "features": {"x": None}})
    while task.open_episodes:
        (request,) = (each for group in asked.feature_requests for each in group.requests)
        values = dict.fromkeys(request.features, 0.9)
        asked = run(task, "feature_values", {"id": "buys", "features": values})
        spec["bought"] = True
    assert asked.answers
print([spec.get("bought", False) for spec in specs])
"""
TREE = '"learner": {"name": "h-tree", "grace_period": 10, "delta": 0.1, "tau": 0.5}'
SPECS = [
    f'{{{TREE}, "acquire": {{"name": "path", "explore": 1.0}}}}',
    f'{{{TREE}, "acquire": {{"name": "random", "share": 1.0}}}}',
    '{"learner": {"name": "ufodt", "hypotheses": 20}}',
]


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_who_buys_features_compiles_nothing_when_it_does() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUYS, *SPECS], capture_output=True, text=True, check=False, timeout=240
    )
    assert (done.returncode, done.stdout) == (0, "[True, True, True]\n"), done.stderr
