"""Traces in a round of small runs: calls in Python and µs of CPU, traces off, not sampled, and on, as JSON.

    python -m benchmarks.traces [--partitions 8] [--rounds 150] [--turns 5]

The rounds are those of `benchmarks.rounds`. Off is a worker without `OTEL_*` variables; not sampled is one
whose sampler leaves every run out; on is one whose spans go to a collector that costs nothing. Ratios compare
rounds of the same turn. Calls are the same on every machine, however busy it is.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from benchmarks.rig.stages import GC_THRESHOLDS
from benchmarks.rounds import batches_of, count_calls, measure
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.processing.pipeline import Pipeline

MakePipeline = Callable[..., Pipeline]
OFF: Final = "off"


def traced(*, sampled: bool) -> MakePipeline:
    """Return what makes the pipeline of a worker with traces, whose spans are thrown away in a thread."""
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

    from streamapp.worker.processing.traced_pipeline import TracedPipeline
    from streamapp.worker.telemetry.traces import Traces

    class Nowhere(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider(ALWAYS_ON if sampled else ALWAYS_OFF, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracer = provider.get_tracer(__name__)
    traces = Traces(tracer, group="benchmark", instance="w", keep_all=False, max_links=128)
    return partial(TracedPipeline, traces=traces)


def compare(batches: list[list[bytes]], rounds: int, turns: int) -> dict[str, dict[str, float]]:
    """Return calls and CPU of a round for each way; calls with traces off are counted before any import."""
    calls = {OFF: asyncio.run(count_calls(batches, rounds, True))}
    imported_off = "opentelemetry.sdk" in sys.modules
    ways: dict[str, MakePipeline] = {
        OFF: Pipeline,
        "not sampled": traced(sampled=False),
        "on": traced(sampled=True),
    }
    for way in list(ways)[1:]:
        calls[way] = asyncio.run(count_calls(batches, rounds, True, ways[way]))
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(turns):
        for way, make in ways.items():
            seconds[way].append(sum(asyncio.run(measure(batches, rounds, True, make)).values()))
    return {
        way: {
            "calls_per_round": round(calls[way], 1),
            "microseconds_per_round": round(statistics.median(seconds[way])),
            "ratio_to_off": round(
                statistics.median(a / b for a, b in zip(seconds[way], seconds[OFF], strict=True)), 3
            ),
            "sdk_imported": imported_off if way == OFF else True,
        }
        for way in ways
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.traces", description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--keys", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--batch-bytes", type=int, default=1000, help="of the records of a run, about")
    options = parser.parse_args()
    # The broker is away on purpose.
    logging.getLogger("topics.clients.delivery_failures").setLevel(logging.ERROR)
    warm_kernels()
    batches = batches_of(options.rounds, options.partitions, options.keys, options.batch_bytes)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    for way, figures in compare(batches, min(options.rounds, *map(len, batches)), options.turns).items():
        print(json.dumps({"traces": way, **figures}))


if __name__ == "__main__":
    main()
