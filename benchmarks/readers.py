"""Speed of the data set readers, in one thread.

    python -m benchmarks.readers [--rows N]

Prints one JSON object for each file: rows per second and the goal, if there is one. Files are generated into
a temporary folder, except a9a, which is committed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from topics.readers import open_dataset

DATA = Path(__file__).resolve().parent.parent / "examples" / "data"
FEATURES = 10
CSV_GOAL = 300_000  # rows per second
A9A_GOAL = 48_842


def generated(folder: Path, rows: int) -> Iterator[tuple[str, list[Path]]]:
    x = np.random.default_rng(1).normal(size=(rows, FEATURES)).round(6)
    lines = [",".join(map(repr, row)) + f",c{n % 2}\n" for n, row in enumerate(x.tolist())]
    names = ",".join(f"f{j}" for j in range(FEATURES))
    header = "@relation r\n" + "".join(f"@attribute f{j} real\n" for j in range(FEATURES))
    texts = {
        "numbers.csv": f"{names},class\n" + "".join(lines),
        "numbers.arff": header + "@attribute class {c0,c1}\n@data\n" + "".join(lines),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        yield name, [folder / name]
    packed = folder / "numbers.csv.gz"
    packed.write_bytes(gzip.compress(texts["numbers.csv"].encode(), 1))
    yield packed.name, [packed]


def measure(name: str, paths: list[Path], goal: int | None) -> None:
    best = 0.0
    for _ in range(3):
        started = time.perf_counter()
        rows = sum(len(y) for _, y in open_dataset(paths).batches())
        best = max(best, rows / (time.perf_counter() - started))
    print(json.dumps({"file": name, "rows": rows, "rows_per_second": round(best), "goal": goal}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readers", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    options = parser.parse_args()
    measure("a9a.gz + a9a.t.gz", [DATA / "a9a.gz", DATA / "a9a.t.gz"], A9A_GOAL)
    with tempfile.TemporaryDirectory() as folder:
        for name, paths in generated(Path(folder), options.rows):
            measure(name, paths, CSV_GOAL)


if __name__ == "__main__":
    main()
