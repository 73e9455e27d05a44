"""Distances of windows beside those of frouros (tests/golden/bounded.py)."""

import json

import pytest

from core.inputs.input.distances import compare
from tests.golden import bounded
from tests.unit.core.inputs.test_comparison import parameters, row_of

GOLDEN = json.loads(bounded.FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("seed", bounded.SEEDS)
def test_distances_are_those_of_frouros(seed):
    before, now = bounded.windows_of(seed)
    shift = compare(parameters(window=1000), row_of(bounded.BINS, before, now, False), False)
    theirs = GOLDEN[str(seed)]
    assert shift.psi == pytest.approx(theirs["psi"], rel=1e-12)
    assert shift.hellinger == pytest.approx(theirs["hellinger"], rel=1e-9)
    assert shift.ks == pytest.approx(theirs["ks"], abs=1e-12)
