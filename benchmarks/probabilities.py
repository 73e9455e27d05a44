"""Cost of calibration and of conformal sets: nanoseconds per answered record, as JSON lines.

    python -m benchmarks.probabilities
    python -m benchmarks.probabilities --task

Models with the same tree answer the same unlabelled records in runs of 5,000, in turn; one has neither part,
the others calibrators, sets or both. Times are CPU time. The ratio to the plain answer is the median over
turns, so that a busy machine disturbs all alike. With --task a task decodes, answers and encodes JSON
instances of ten features.
"""

from __future__ import annotations

import json
import statistics
from typing import Any

from benchmarks.answer_cost import Times, arguments, in_kernel, in_task

STREAMS = ("hyperplane", "waveform", "led")
"""Streams of two, three and ten classes."""
PARTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "platt": {"calibration": "platt"},
    "isotonic": {"calibration": "isotonic"},
    "sets": {"conformal": {}},
    "platt and sets": {"calibration": "platt", "conformal": {}},
    "isotonic and sets": {"calibration": "isotonic", "conformal": {}},
}


def figures(times: Times, digits: int) -> dict[str, Any]:
    """Return the median time of each part, and its median ratio to the plain answer of the same turn."""
    plain = times["plain"]
    return {
        name: {
            "time": round(statistics.median(values), digits),
            "ratio": round(statistics.median(t / p for t, p in zip(values, plain, strict=True)), 3),
        }
        for name, values in times.items()
    }


def compare(stream: str, rounds: int) -> dict[str, Any]:
    """Return the nanoseconds of an answer with each part, and the bytes that a part adds to a model."""
    times, sizes = in_kernel(stream, PARTS, rounds)
    added = {name: size - sizes["plain"] for name, size in sizes.items()}
    return {"stream": stream, "ns": figures(times, 1), "bytes": added}


def main() -> None:
    """Measure all streams, or answers in a task."""
    options = arguments("probabilities", __doc__.splitlines()[0], STREAMS, 60).parse_args()
    if options.task:
        print(json.dumps({"task": True, "us": figures(in_task(PARTS, 40, options.turns), 3)}))
        return
    for stream in options.streams:
        print(json.dumps(compare(stream, options.rounds)))


if __name__ == "__main__":
    main()
