"""The isotonic calibrator beside streamcal's, which keeps bins of equal width (tests/golden/bounded.py)."""

import json

import pytest

from tests.golden import bounded
from tests.unit.core.calibrators.test_calibrators import Calibrator

GOLDEN = json.loads(bounded.FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("seed", bounded.SEEDS)
def test_with_a_block_for_each_of_its_bins_the_calibrated_shares_are_those_of_streamcal(seed):
    calibrator = Calibrator("isotonic", memory=0, blocks=bounded.PARTS + 1, prior=0.0)
    for part, label in zip(*map(list, bounded.labels_of(seed)), strict=True):
        calibrator.learn((part + 0.5) / bounded.PARTS, float(label), 1.0)
    answers = [calibrator.calibrated((part + 0.5) / bounded.PARTS) for part in range(bounded.PARTS)]
    assert answers == pytest.approx(GOLDEN[str(seed)]["isotonic"], abs=1e-9)
