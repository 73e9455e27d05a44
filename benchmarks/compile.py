"""How long compiling all kernels takes from nothing, and loading them again, as one JSON line.

    python -m benchmarks.compile

Each in a process of its own, over a cache directory that is empty before and removed afterwards, as
`grove warm` does it on a new machine: importing numpy, numba and every module with kernels counts. CPU
seconds, which a busy machine stretches less than the clock; the limit is 120 s for compiling.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 120.0

_WARM = """
import json, time
from streamapp.worker.compile_ahead import warm_kernels
seconds = warm_kernels()
print(json.dumps({"cpu_s": round(time.process_time(), 1), "wall_s": round(seconds, 1)}))
"""


def warmed(cache: Path) -> dict[str, float]:
    """Return the seconds that a new process takes to have all kernels."""
    done = subprocess.run(
        [sys.executable, "-c", _WARM],
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
        compiled = warmed(cache)
        loaded = warmed(cache)
        kept = [*cache.rglob("*.nbc")]
        return {
            "compiled": compiled,
            "loaded": loaded,
            "limit_cpu_s": LIMIT,
            "within": compiled["cpu_s"] <= LIMIT,
            "kernels": len(kept),
            "bytes": sum(file.stat().st_size for file in kept),
        }


if __name__ == "__main__":
    print(json.dumps(measure()))
