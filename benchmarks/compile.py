"""Time to compile all kernels from nothing, and to load them from the cache, as one JSON line.

    python -m benchmarks.compile

Each measurement is a separate process, with a cache directory that is empty before and removed afterwards, as
for `grove warm` on a new machine: importing numpy, numba and every module with kernels counts. `default` is
the part that the first worker, or the first run, with the default spec compiles. Figures are CPU seconds,
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
    """Return the seconds in which a new process gets all kernels, or those of the default spec."""
    process = subprocess.run(
        [sys.executable, "-c", _WARM, what],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds: dict[str, float] = json.loads(process.stdout)
    return seconds


def measure() -> dict[str, object]:
    """Return the times of compiling and loading, and the size of the cache."""
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
