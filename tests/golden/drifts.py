"""Writes ``drifts.json`` anew with River: ``python -m tests.golden.drifts`` (needs the extra bench).

For every stream of errors (made by ``errors(seed)``) the positions at which River 0.26.1 reports a drift, and
the CRC-32 of the errors, so that a change of the random generator shows as such.
"""

import json
import zlib
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("drifts.json")
SEEDS = range(5)

# Ours on the left, River's on the right. (River's DDM judges from the 31st input on, MOA's from the 29th.)
# River's HDDMW is left out: its first input counts less than in the paper and in its authors' code for MOA.
DETECTORS = {
    "eddm": ({"name": "eddm"}, "EDDM()"),
    "eddm, careful": ({"name": "eddm", "warm_up": 60, "warning": 0.8, "drift": 0.75}, "EDDM(60, 0.8, 0.75)"),
    "page-hinkley": ({"name": "page_hinkley"}, "PageHinkley(mode='up')"),
    "page-hinkley, both": ({"name": "page_hinkley", "two_sided": True}, "PageHinkley()"),
    "page-hinkley, eager": (
        {"name": "page_hinkley", "warm_up": 100, "tolerance": 0.02, "threshold": 15.0, "memory": 0.999},
        "PageHinkley(100, 0.02, 15.0, 0.999, 'up')",
    ),
    "adwin": ({"name": "adwin", "two_sided": True, "keep_newer": False}, "ADWIN()"),
    "adwin, every input": (
        {"name": "adwin", "two_sided": True, "clock": 1, "keep_newer": False},
        "ADWIN(clock=1)",
    ),
    "adwin, eager": (
        {
            "name": "adwin",
            "two_sided": True,
            "confidence": 0.1,
            "clock": 7,
            "min_part": 20,
            "min_window": 60,
            "keep_newer": False,
        },
        "ADWIN(delta=0.1, clock=7, min_window_length=20, grace_period=60)",
    ),
    "ddm": ({"name": "ddm", "warm_up": 32}, "DDM()"),
    "hddm-a": ({"name": "hddm_a", "fall": "ignore"}, "HDDMA()"),
    "hddm-a, eager": (
        {"name": "hddm_a", "drift": 0.05, "warning": 0.1, "fall": "ignore"},
        "HDDMA(drift_confidence=0.05, warning_confidence=0.1)",
    ),
    # A sample of the whole older part is the same for every random generator.
    "kswin": (
        {"name": "kswin", "window": 60, "two_sided": True, "keep_newer": False},
        "KSWIN(window_size=60, stat_size=30, seed=1)",
    ),
    "kswin, careful": (
        {
            "name": "kswin",
            "window": 200,
            "recent": 100,
            "confidence": 1e-4,
            "two_sided": True,
            "keep_newer": False,
        },
        "KSWIN(alpha=1e-4, window_size=200, stat_size=100, seed=1)",
    ),
}


def errors(seed):
    """Return a stream of errors, int[n]: eight spells, each with a rate of its own."""
    random = np.random.default_rng(seed)
    rates = np.repeat(random.random(8) * 0.5, random.integers(200, 3000, 8))
    return (random.random(len(rates)) < rates).astype(np.int8)


def drifts_of_river(call, stream):
    """Return the positions at which a detector of River reports a drift."""
    from river.drift import ADWIN, KSWIN, PageHinkley
    from river.drift.binary import DDM, EDDM, HDDMA

    made = {cls.__name__: cls for cls in (ADWIN, KSWIN, PageHinkley, DDM, EDDM, HDDMA)}
    detector = eval(call, made)
    positions = []
    for position, error in enumerate(stream.tolist()):
        detector.update(error)
        if detector.drift_detected:
            positions.append(position)
    return positions


def main():
    held = {
        str(seed): {
            "crc": zlib.crc32(errors(seed).tobytes()),
            "drifts": {name: drifts_of_river(call, errors(seed)) for name, (_, call) in DETECTORS.items()},
        }
        for seed in SEEDS
    }
    FILE.write_text(json.dumps(held) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
