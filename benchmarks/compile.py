"""How long compiling kernels takes from nothing, and loading them again, as one JSON line.

    python -m benchmarks.compile

Each in a process of its own, over a cache directory that is empty before and removed afterwards, as
`grove warm` does it on a new machine: importing numpy, numba and every module with kernels counts.
`default` is what the first worker, or the first run, with the default spec compiles of them. CPU seconds,
which a busy machine stretches less than the clock; the limits are 30 s for `default` and 80 s for all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_DEFAULT, LIMIT = 30.0, 80.0

_WARM = """
import json, sys, time
from core.spec import Spec
from streamapp.worker.compile_ahead import warm_kernels
seconds = warm_kernels(*[Spec.parse()] * (sys.argv[1] == "default"))
print(json.dumps({"cpu_s": round(time.process_time(), 1), "wall_s": round(seconds, 1)}))
"""


def warmed(cache: Path, what: str = "all") -> dict[str, float]:
    """Return the seconds that a new process takes to have all kernels, or those of the default spec."""
    done = subprocess.run(
        [sys.executable, "-c", _WARM, what],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure() -> dict[str, object]:
    """Return what compiling and loading take, and what is kept."""
    with tempfile.TemporaryDirectory(prefix="kernels-") as name:
        cache = Path(name)
        default = warmed(cache / "default", "default")
        compiled = warmed(cache)
        loaded = warmed(cache)
        kept = [file for file in cache.rglob("*.nbc") if "default" not in file.parts]
        return {
            "default": default,
            "compiled": compiled,
            "loaded": loaded,
            "limit_cpu_s": [LIMIT_DEFAULT, LIMIT],
            "within": default["cpu_s"] <= LIMIT_DEFAULT and compiled["cpu_s"] <= LIMIT,
            "kernels": len(kept),
            "bytes": sum(file.stat().st_size for file in kept),
        }


if __name__ == "__main__":
    print(json.dumps(measure()))
