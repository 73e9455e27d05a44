"""What `grove warm` compiles is everything: a worker that serves meets no cold kernel."""

import json
import subprocess
import sys

import pytest

from core.kernels import jit


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
@pytest.mark.parametrize(
    "spec",
    [[], ['{"learner": {"name": "h-tree", "grace_period": 50, "delta": 0.01, "tau": 0.1}, "drift": "ddm"}']],
    ids=["all", "of a spec"],
)
def test_a_run_compiles_nothing_after_warm(spec: list[str]) -> None:
    """After that of a spec a worker with its models meets no cold kernel; after that of all none does."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.cold_run", *spec], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    expected = {
        "models.created",
        "models.splits",
        "alerts.drift",
        "instances.requested",
        "evaluations",
        "labels.learned",
    }
    assert expected <= figures["happened"].keys()
    assert figures["compiled"] == []
