"""Writes ``moa_drifts.json`` anew with MOA: ``python -m tests.golden.moa_drifts`` (fetches MOA).

For every stream of errors of ``tests.golden.drifts`` the positions at which a detector of MOA 2024.07.0
reports a drift, and CRC-32s of the errors and of the levels after each of them (int8: 0 in control,
1 warning, 2 drift), which tell warnings too. MOA's EDDM has no options, its ADWIN one.
"""

import json
import zlib
from pathlib import Path

import numpy as np

from tests.golden.drifts import SEEDS, errors

FILE = Path(__file__).with_name("moa_drifts.json")

# Ours on the left, MOA's on the right.
DETECTORS = {
    "ddm": ({"name": "ddm"}, "DDM"),
    "ddm, careful": (
        {"name": "ddm", "warm_up": 100, "warning": 2.5, "drift": 3.5},
        "DDM -n 100 -w 2.5 -o 3.5",
    ),
    "eddm": ({"name": "eddm", "compat": "moa"}, "EDDM"),
    "page-hinkley": ({"name": "page_hinkley", "compat": "moa"}, "PageHinkleyDM"),
    "page-hinkley, eager": (
        {
            "name": "page_hinkley",
            "warm_up": 100,
            "tolerance": 0.02,
            "threshold": 15.0,
            "memory": 0.999,
            "compat": "moa",
        },
        "PageHinkleyDM -n 100 -d 0.02 -l 15.0 -a 0.999",
    ),
    "adwin": ({"name": "adwin", "compat": "moa"}, "ADWINChangeDetector"),
    "adwin, eager": ({"name": "adwin", "confidence": 0.1, "compat": "moa"}, "ADWINChangeDetector -a 0.1"),
    "cusum": ({"name": "cusum"}, "CusumDM"),
    "cusum, eager": (
        {"name": "cusum", "warm_up": 99, "tolerance": 0.02, "threshold": 8.0},
        "CusumDM -n 100 -d 0.02 -l 8.0",
    ),
    "hddm-a": ({"name": "hddm_a"}, "HDDM_A_Test"),
    "hddm-a, one side": (
        {"name": "hddm_a", "drift": 0.05, "warning": 0.1, "fall": "ignore"},
        "HDDM_A_Test -d 0.05 -w 0.1 -t One-sided",
    ),
    "hddm-w": ({"name": "hddm_w"}, "HDDM_W_Test"),
    "hddm-w, quick": (
        {"name": "hddm_w", "drift": 0.01, "warning": 0.05, "weight": 0.2},
        "HDDM_W_Test -d 0.01 -w 0.05 -m 0.2",
    ),
    "rddm": ({"name": "rddm"}, "RDDM"),
    "rddm, short": (
        {"name": "rddm", "warm_up": 40, "longest": 500, "stable": 100, "warnings": 50},
        "RDDM -n 40 -x 500 -y 100 -z 50",
    ),
    "rddm, no warning": (
        {"name": "rddm", "warning": 2.0, "drift": 2.0, "longest": 300, "stable": 250},
        "RDDM -w 2.0 -o 2.0 -x 300 -y 250",
    ),
    "stepd": ({"name": "stepd", "two_sided": True, "compat": "moa"}, "STEPD"),
    "stepd, long": (
        {"name": "stepd", "window": 75, "drift": 0.01, "warning": 0.1, "two_sided": True, "compat": "moa"},
        "STEPD -r 75 -o 0.01 -w 0.1",
    ),
    "seed": ({"name": "seed", "two_sided": True, "compat": "moa"}, "SEEDChangeDetector"),
    "seed, merging": (
        {
            "name": "seed",
            "confidence": 0.2,
            "block": 40,
            "growth": 0.2,
            "merge_every": 50,
            "two_sided": True,
            "compat": "moa",
        },
        "SEEDChangeDetector -d 0.2 -b 40 -a 0.2 -c 50",
    ),
}


def main():
    from benchmarks.peers import moa

    held = {}
    for seed in SEEDS:
        stream = errors(seed)
        levels_of = {name: moa.levels(theirs, stream) for name, (_, theirs) in DETECTORS.items()}
        held[str(seed)] = {
            "crc": zlib.crc32(stream.tobytes()),
            "levels": {name: zlib.crc32(levels.tobytes()) for name, levels in levels_of.items()},
            "drifts": {name: np.flatnonzero(levels == 2).tolist() for name, levels in levels_of.items()},
        }
    FILE.write_text(json.dumps(held) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
