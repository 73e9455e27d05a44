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
