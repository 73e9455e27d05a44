"""Pairs through a task alone, without Kafka: CPU microseconds per pair and stage, as JSON.

    python -m benchmarks.pairs [--keys 64] [--keep requested|all] [--format json|packed] [--pairs 300000]
                                [--annotators 7] [--repeated] [--labels in-time|early|late|own]
    python -m benchmarks.pairs --loop [--kinds people demo features] [--guarantees exactly_once] [--json]

A pair is an instance without a label, and its label, `--delay` pairs later. Both go through one task in runs
of 2,000 records over one buffer, as they are fetched. `--keep requested`: every label is requested, and the
requests are encoded; `all`: all instances are kept, requested or not. The first pairs fill the store of
pending instances (`pending.max.bytes`), so that ids are forgotten during the measurement. `--annotators`:
labels have the name of an annotator; `--repeated`: each run of labels comes twice, as after a retry.
`--labels early`: each label comes `--delay` pairs before its instance, as in a replay or after an outage of
one topic (`--delay 4000`: more do not fit their store); `late`: each comes after `pending.ttl.ms` and is not
learned; `own`: each carries its features. `pairs_per_second` is the rate of one thread without other work;
`benchmarks.pipeline --pairs` includes the way to Kafka and back.

`--loop`: a real worker and a broker, from a request on its topic to its answer, learned and committed
(benchmarks/rig/label_loop.py): percentiles in ms and in commit intervals, one object for each kind.
"""

from __future__ import annotations

import argparse
import gc
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.peers.job import COMMIT_MS
from benchmarks.rig.broker import broker
from benchmarks.rig.label_loop import KINDS, LoopPlan, measure_loop
from benchmarks.rig.systems import GUARANTEES
from benchmarks.task import NOW, RUN, Stopwatch
from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.task.task import CODE, Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from topics.codecs import CONTENT_TYPES, encode_instances, encode_labels
from topics.columns.records import Features, RawRecords
from topics.columns.spans import RecordSpans
from topics.definitions import TopicNames

STAGES = ("instance decode", "instance process", "instance encode", "label decode", "label process")
RECORDS_PER_MS = 60
REPEATED = ("repeated label decode", "repeated label process")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=64, help="models")
    parser.add_argument("--attributes", type=int, default=3)
    parser.add_argument("--keep", choices=("requested", "all"), default="requested")
    parser.add_argument("--format", choices=("json", "packed"), default="json")
    parser.add_argument("--pairs", type=int, default=300_000, help="pairs, the first two thirds to warm up")
    parser.add_argument("--delay", type=int, default=20_000, help="pairs between an instance and its label")
    parser.add_argument("--annotators", type=int, default=0, help="annotators of the labels; 0: unknown")
    parser.add_argument("--repeated", action="store_true", help="each run of labels comes a second time")
    parser.add_argument("--labels", choices=("in-time", "early", "late", "own"), default="in-time")
    parser.add_argument("--handler", choices=("stop-partition", "dead-letter"), default="stop-partition")
    parser.add_argument("--json", action="store_true", help="print JSON, as it does without this option")
    loop = parser.add_argument_group("--loop")
    loop.add_argument(
        "--loop", action="store_true", help="measure from request to learned label, on a broker"
    )
    loop.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="sources of the answers")
    loop.add_argument("--guarantees", nargs="+", choices=GUARANTEES, default=GUARANTEES)
    loop.add_argument("--commit-ms", type=int, default=COMMIT_MS, help="commit interval of the worker")
    loop.add_argument("--rate", type=int, default=200, help="instances a second")
    loop.add_argument("--seconds", type=float, default=20.0)
    return parser.parse_args()


class Stream:
    """Instances and labels of the same numbers, in runs."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._given = options
        self._rng = np.random.default_rng(1)
        header = (("content-type", CONTENT_TYPES["packed"].encode()),)
        self._headers = [header if options.format == "packed" else ()] * RUN
        self._labels: dict[int, list[str]] = {}
        self._x: dict[int, npt.NDArray[np.float64]] = {}
        self._later = "instances" if options.labels == "early" else "labels"

    def instances(self, number: int) -> RawRecords:
        """Return the run of this number; `labels` has its labels from then on."""
        options = self._given
        x = np.round(self._rng.random((RUN, options.attributes)) * 10, 4)
        self._labels[number] = np.where(x[:, 0] + x[:, 1 % options.attributes] <= 9, "a", "b").tolist()
        if options.labels == "own":
            self._x[number] = x
        values = encode_instances(self._features(x), ids=self._ids(number), format=options.format)
        return self._run("instances", number, values)

    def labels(self, number: int) -> RawRecords:
        """Return the labels of a run."""
        people = self._given.annotators
        who = [f"annotator {row % people}" for row in range(RUN)] if people else None
        # An early label belongs to features that do not exist yet: any class will do.
        labels = self._labels.get(number) or self._rng.choice(["a", "b"], RUN).tolist()
        columns: dict[str, Any] = {"annotators": who, "format": self._given.format}
        if self._given.labels == "own":
            columns["features"] = self._features(self._x.pop(number))
        values = encode_labels(self._ids(number), labels, **columns)
        return self._run("labels", number, values)

    def _features(self, x: npt.NDArray[np.float64]) -> Features:
        packed = self._given.format == "packed"
        return Features.of(None if packed else tuple(f"x{i}" for i in range(x.shape[1])), x)

    def _ids(self, number: int) -> list[str]:
        return [f"r{row}" for row in range(number * RUN, (number + 1) * RUN)]

    def _run(self, topic: str, number: int, values: list[bytes]) -> RawRecords:
        offsets = range(number * RUN, (number + 1) * RUN)
        keys = [b"model-%d" % (row % self._given.keys) for row in offsets]
        times = [
            NOW + (row + self._given.delay * (topic == self._later)) // RECORDS_PER_MS for row in offsets
        ]
        return RawRecords.over(topic, 0, RecordSpans.of(offsets, times, keys, values, self._headers))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    asks = options.keep == "requested"
    spec: dict[str, Any] = {"learner": {"name": "h-tree", "leaf_model": "mc"}}
    if asks:
        spec |= {"query": "always", "budget": {"name": "count", "limit": 1.0}}
    is_early, is_late = options.labels == "early", options.labels == "late"
    # In milliseconds of event time; ids are kept for twice the time to live.
    ttl = {"pending_ttl_ms": max(1, options.delay // RECORDS_PER_MS * 2 // 3)} if is_late else {}
    config = TaskConfig(
        model_spec=json.dumps(spec),
        pending_keep=options.keep,
        processing_exception_handler=options.handler,
        **ttl,
    )
    task, encoder, watch, stream = Task(0, config), Encoder(TopicNames()), Stopwatch(), Stream(options)
    runs, lag = options.pairs // RUN, options.delay // RUN
    first_labels, first_instances = (0, lag) if is_early else (lag, 0)
    came = {"in-time": "learned", "early": "early", "late": "late", "own": "learned"}[options.labels]
    gc.freeze()
    found_so = expected = 0
    for number in range(runs + lag):
        if number == runs * 2 // 3:
            watch.seconds.clear()
        if first_instances <= number < runs + first_instances:
            raw = stream.instances(number - first_instances)
            with watch("instance decode"):
                (batch,) = CODE["instances"].decode([raw], task.config.limits)
            with watch("instance process"):
                effects = task.process(TaskRun("instances", raw, batch))
            with watch("instance encode"):
                encoder.encode(raw, effects)
            assert not is_early or effects.counts["early.learned"] == RUN, effects.counts
        if first_labels <= number < runs + first_labels:
            labels = stream.labels(number - first_labels)
            with watch("label decode"):
                (decoded,) = CODE["labels"].decode([labels], task.config.limits)
            with watch("label process"):
                effects = task.process(TaskRun("labels", labels, decoded))
            found_so += effects.counts[f"labels.{came}"]
            expected += RUN
            if options.repeated:
                with watch("repeated label decode"):
                    (decoded,) = CODE["labels"].decode([labels], task.config.limits)
                with watch("repeated label process"):
                    effects = task.process(TaskRun("labels", labels, decoded))
                assert effects.counts["labels.duplicate"] == RUN, effects.counts
    assert found_so == expected, (found_so, expected)
    names = STAGES + REPEATED * options.repeated
    stages = {stage: watch.microseconds(stage, RUN) for stage in names}
    # Forgetting happens from time to time, a sixteenth of the store at once: means include it, medians do
    # not.
    means = {stage: sum(watch.seconds[stage]) / len(watch.seconds[stage]) / RUN * 1e6 for stage in names}
    return {
        "keys": options.keys,
        "keep": options.keep,
        "labels": options.labels,
        "format": options.format,
        "remembered": len(task.pending),
        "pairs": options.pairs,
        "us_per_pair": {stage: round(value, 3) for stage, value in stages.items()}
        | {"all": round(sum(stages.values()), 3)},
        "mean_us_per_pair": {stage: round(value, 3) for stage, value in means.items()}
        | {"all": round(sum(means.values()), 3)},
        "pairs_per_second": round(1e6 / sum(means.values())),
    }


def main() -> int:
    options = arguments()
    if not options.loop:
        print(json.dumps(measure(options), indent=1))
        return 0
    with broker() as bootstrap:
        for guarantee in options.guarantees:
            for kind in options.kinds:
                plan = LoopPlan(kind, guarantee, options.commit_ms, options.rate, options.seconds)
                print(json.dumps(measure_loop(bootstrap, plan)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
