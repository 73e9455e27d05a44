"""Measured costs: CPU, memory, bytes and delays of a worker, each with its unit and its program."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from streamapp.errors import UsageError


def _cost(value: float, unit: str, source: str) -> Any:
    return field(default=value, metadata={"unit": unit, "source": source})


@dataclass(frozen=True)
class Costs:
    """The costs of a worker that `grove plan` adds up.

    Defaults are figures of docs/scale.md for labelled JSON records of 10 numbers and the default tree. A file
    of `python -m benchmarks.scaling --fit` replaces them by the figures of another machine.
    """

    record_us: float = _cost(2.4, "µs of CPU a record, without its bytes", "benchmarks.scaling --fit")
    byte_ns: float = _cost(2.5, "ns of CPU a byte of a record's value", "benchmarks.task --attributes")
    many_models_us: float = _cost(
        0.9, "µs of CPU a record more with 10,000 models or more on a worker", "benchmarks.task"
    )
    round_us: float = _cost(4_300.0, "µs of CPU a round", "benchmarks.pipeline --latency")
    short_round_us: float = _cost(
        2_300.0, "µs of CPU a round with CPU to spare, at least once", "benchmarks.broker_load"
    )
    run_us: float = _cost(45.0, "µs of CPU a run of a round", "benchmarks.rounds --partitions")
    commit_us: float = _cost(2_200.0, "µs of CPU a commit", "benchmarks.pipeline --latency")
    commit_partition_us: float = _cost(
        60.0, "µs of CPU a partition of a commit", "benchmarks.pipeline --latency --partitions"
    )
    snapshot_us_per_mb: float = _cost(
        53_000.0, "µs of CPU a MB of models in a snapshot", "benchmarks.snapshot_cost"
    )
    idle_us: float = _cost(6_000.0, "µs of CPU a second of an idle worker", "benchmarks.pipeline")
    pace_ms: float = _cost(
        25.0, "ms between two rounds at least once, at most", "streamapp/worker/driver/pace.py"
    )
    fetch_cores: float = _cost(
        0.5, "cores up to which a worker fetches sooner at least once", "fetch.max.cpu.percent"
    )
    least_commit_ms: float = _cost(50.0, "ms, shortest commit interval", "benchmarks.transactions")
    exactly_once_ms: float = _cost(
        20.0, "ms of an answer besides its interval", "benchmarks.pipeline --latency"
    )
    at_least_once_ms: float = _cost(4.5, "ms of an answer besides its round", "benchmarks.pipeline --latency")
    process_mb: float = _cost(400.0, "MB of a worker without models", "benchmarks.scaling")
    partition_mb: float = _cost(3.0, "MB of a partition without models", "benchmarks.scaling")
    model_bytes: float = _cost(12_000.0, "bytes of a model", "benchmarks.memory, grove_model_bytes")
    answer_bytes: float = _cost(34.0, "bytes of an answer in its batch (lz4)", "benchmarks.broker_load")
    frame_bytes: float = _cost(
        30.0, "bytes of a record beside its value: its key, its part of its batch", "benchmarks.broker_load"
    )
    batch_bytes: float = _cost(190.0, "bytes of a batch of answers beside them", "benchmarks.broker_load")
    journal_bytes: float = _cost(200.0, "bytes of a journal record and its batch", "benchmarks.broker_load")
    snapshot_seconds: float = _cost(60.0, "s between two snapshots", "snapshot.interval.ms")


def checked_model_bytes(value: float) -> float:
    """Return the bytes of a model. Raises UsageError if they are not above 0."""
    if not 0 < value < math.inf:
        message = (
            f"--model-bytes {value:g} must be above 0 bytes; grove_model_bytes / grove_models_loaded shows "
            "them"
        )
        raise UsageError(message)
    return value


def read_costs(path: Path) -> Costs:
    """Return the costs of a JSON file: an object whose members replace the defaults of the same names.

    Raises UsageError if a name is unknown or a value is no number of at least 0.
    """
    try:
        members = json.loads(path.read_text())
    except OSError as error:
        message = f"--costs {path} cannot be read: {error.strerror}"
        raise UsageError(message) from error
    except ValueError as error:
        message = (
            f"--costs {path} must be a JSON object, as python -m benchmarks.scaling --fit prints it: {error}"
        )
        raise UsageError(message) from error
    names = [entry.name for entry in fields(Costs)]
    if not isinstance(members, dict):
        message = f"--costs {path} must be a JSON object of costs; known: {', '.join(names)}"
        raise UsageError(message)
    for name, value in members.items():
        if name not in names:
            message = f"--costs {path}: {name} is no cost; known: {', '.join(names)}"
            raise UsageError(message)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            message = (
                f"--costs {path}: {name} is {value!r}, but must be a number of at least 0 ({unit_of(name)})"
            )
            raise UsageError(message)
    return Costs(**members)


def unit_of(name: str) -> str:
    """Return the unit of a cost."""
    return next(str(entry.metadata["unit"]) for entry in fields(Costs) if entry.name == name)
