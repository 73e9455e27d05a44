"""Every detector beside River's and MOA's (golden) and its naive twin, on streams with many changes."""

import json
import zlib

import numpy as np
import pytest

from core import registry
from core.drift.base import DRIFT, LEVELS
from core.errors import ParameterError
from core.spec import Spec
from tests.golden import drifts, moa_drifts
from tests.naive.detectors import DETECTORS
from tests.unit.core.builders import detector_of

GOLDEN = json.loads(drifts.FILE.read_text(encoding="utf-8"))
GOLDEN_OF_MOA = json.loads(moa_drifts.FILE.read_text(encoding="utf-8"))


def levels_of(spec, errors):
    """Return the level after each of the errors, and the state at the end."""
    parameters = {name: value for name, value in spec.items() if name != "name"}
    level_after, state = detector_of(registry.plugin("drift", spec["name"])(**parameters))
    return [level_after(error) for error in errors], state


@pytest.mark.parametrize("seed", drifts.SEEDS)
@pytest.mark.parametrize("name", drifts.DETECTORS)
def test_drifts_are_those_of_river(name, seed):
    golden = GOLDEN[str(seed)]
    errors = drifts.errors(seed)
    assert zlib.crc32(errors.tobytes()) == golden["crc"]
    levels, _ = levels_of(drifts.DETECTORS[name][0], errors)
    assert [i for i, level in enumerate(levels) if level == DRIFT] == golden["drifts"][name]


@pytest.mark.parametrize("seed", drifts.SEEDS)
@pytest.mark.parametrize("name", moa_drifts.DETECTORS)
def test_levels_are_those_of_moa(name, seed):
    golden = GOLDEN_OF_MOA[str(seed)]
    errors = drifts.errors(seed)
    assert zlib.crc32(errors.tobytes()) == golden["crc"]
    levels, _ = levels_of(moa_drifts.DETECTORS[name][0], errors)
    assert [i for i, level in enumerate(levels) if level == DRIFT] == golden["drifts"][name]
    assert zlib.crc32(np.array(levels, np.int8).tobytes()) == golden["levels"][name]


def test_every_stream_has_drifts():
    for made, held in ((drifts, GOLDEN), (moa_drifts, GOLDEN_OF_MOA)):
        for name in made.DETECTORS:
            assert sum(len(golden["drifts"][name]) for golden in held.values()) >= 5


SPECS = [{"name": name} for name in registry.names("drift")] + [
    {"name": "adwin", "two_sided": True, "clock": 3, "min_part": 2, "min_window": 0, "confidence": 0.2},
    {"name": "adwin", "keep_newer": False, "confidence": 0.1},
    {"name": "adwin", "compat": "moa", "clock": 3, "min_part": 2, "min_window": 0, "confidence": 0.2},
    {"name": "page_hinkley", "compat": "moa", "threshold": 5.0, "warm_up": 7, "memory": 0.99},
    {"name": "eddm", "compat": "moa", "warm_up": 5, "warning": 1.0, "drift": 0.5},
    {"name": "page_hinkley", "two_sided": True, "threshold": 10.0, "warm_up": 5, "memory": 0.99},
    {"name": "eddm", "warm_up": 5, "warning": 1.0, "drift": 0.5},
    {"name": "ddm", "warm_up": 5, "min_errors": 2},
    {"name": "cusum", "warm_up": 5, "tolerance": 0.02, "threshold": 3.0},
    {"name": "hddm_a", "drift": 0.05, "warning": 0.2, "fall": "drift"},
    {"name": "hddm_w", "drift": 0.05, "warning": 0.2, "weight": 0.1, "fall": "drift"},
    {"name": "hddm_w", "fall": "restart"},
    {"name": "kswin", "window": 60},
    {"name": "kswin", "window": 40, "recent": 20, "confidence": 0.1, "two_sided": True, "keep_newer": False},
    {"name": "rddm", "warm_up": 20, "longest": 150, "stable": 60, "warnings": 25},
    {"name": "seed", "block": 8, "confidence": 0.3, "merge_every": 10},
    {"name": "seed", "block": 5, "two_sided": True, "merge_every": 3, "merge_below": 0.1},
    {"name": "stepd", "window": 12, "drift": 0.05, "warning": 0.3},
    {"name": "stepd", "two_sided": True, "compat": "moa", "warning": 0.2},
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: "-".join(map(str, spec.values())))
def test_levels_are_those_of_the_naive_twin(spec):
    errors = np.concatenate([drifts.errors(3)[1800:3000], np.zeros(60), np.ones(60), np.arange(300) % 4 == 0])
    twin = DETECTORS[spec["name"]](**{name: value for name, value in spec.items() if name != "name"})
    ours, state = levels_of(spec, errors)
    assert [LEVELS[level] for level in ours] == [twin.update(int(error)) for error in errors]
    rate = registry.plugin("drift", spec["name"])().error_rate(state)
    assert 0.0 <= rate <= 1.0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "adwin", "keep_newer": False}, "keep_newer=False must be true with compat='moa'"),
        ({"name": "adwin", "two_sided": True}, "two_sided=True must be false with compat='moa'"),
        ({"name": "page_hinkley", "two_sided": True}, "two_sided=True must be false with compat='moa'"),
        ({"name": "seed"}, "two_sided=False must be true with compat='moa'"),
        ({"name": "stepd"}, "two_sided=False must be true with compat='moa'"),
    ],
)
def test_what_moa_has_not_is_refused(spec, message):
    with pytest.raises(ParameterError, match=message):
        Spec.parse({"drift": spec | {"compat": "moa"}})
