"""Nothing hangs: whatever a legal spec says and whatever legal weights come, each record comes to its end."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("given", [[], pytest.param(["all"], marks=pytest.mark.nightly)], ids=["one", "all"])
def test_every_spec_learns_records_of_any_weight_within_bounded_steps(given):
    command = [sys.executable, "-m", "tests.property.progress", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"at {lines[-1:]}\n{done.stderr}"
    cases = int(lines[-1].removesuffix(" cases"))
    assert cases == len(lines) - 1
    assert cases > (1000 if given else 500)
