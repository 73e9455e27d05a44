"""What `grove warm` compiles is everything: a worker that serves meets no cold kernel."""

import json
import subprocess
import sys

import pytest

from core import jit


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_a_run_with_every_plug_in_compiles_nothing_after_warm() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.cold_run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    expected = {
        "models.created",
        "models.splits",
        "alerts.drift",
        "instances.requested",
        "evaluations",
        "labels.learned",
    }
    assert expected <= told["happened"].keys()
    assert told["compiled"] == []
