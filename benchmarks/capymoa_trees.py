"""Our LAST, EFHAT and PLASTIC beside those of CapyMOA's build of MOA: accuracy and records/s, as a table.

    pip install --no-deps capymoa==0.15.1
    python -m benchmarks.capymoa_trees --streams sea,electricity --records 20000

Both test then train on the same rows in memory, with their defaults, in one thread. Times are processor time:
theirs of the last of three repeats, ours of a run after one that compiles. The EFHAT is of PLASTIC's authors.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.datasets import Rows, load
from benchmarks.learners import measured
from benchmarks.peers import capymoa

STREAMS = ("sea", "agrawal", "led", "rbf", "electricity")
LEARNERS = ("last", "efhat", "plastic")
REPEATS = 3


def row_of(rows: Rows, learner: str) -> str:
    """Return a learner's row of the table for a stream."""
    seconds, theirs = capymoa.timed(rows, learner, repeats=REPEATS)
    ours = measured(rows, learner)
    if ours is None:
        return f"| `{learner}` | {rows.name} | - | - | - | - | - |"
    their_us = 1e6 * seconds[-1] / len(rows.y)
    figures = f"{ours['accuracy']:.2f} | {100.0 * theirs:.2f} | {ours['us']:.2f} | {their_us:.2f}"
    return f"| `{learner}` | {rows.name} | {figures} | {their_us / ours['us']:.1f} × |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.capymoa_trees", description="LAST, EFHAT and PLASTIC beside MOA's."
    )
    parser.add_argument("--streams", default=",".join(STREAMS), metavar="A,B")
    parser.add_argument("--learners", default=",".join(LEARNERS), metavar="A,B")
    parser.add_argument("--records", type=int, default=20_000, help="of a stream at most")
    options = parser.parse_args(arguments)
    print("| learner | stream | accuracy | theirs | µs a record | theirs | records/s |")
    print("|---|---|---|---|---|---|---|")
    for stream in options.streams.split(","):
        rows = load(stream, options.records)
        for learner in options.learners.split(","):
            print(row_of(rows, learner), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
