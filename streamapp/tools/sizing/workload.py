"""Workload: the records, models and delays for which workers are planned, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from streamapp.errors import UsageError
from streamapp.tools.sizing.zipf_shares import hottest_share_of

MOST_ZIPF: Final = 5.0
"""Above this exponent, nearly all records belong to one model."""

MOST_RATE: Final = 1e12
"""Records per second: far more than any cluster has; a higher number is a slip."""
MOST_MODELS: Final = 1e9
MOST_BYTES: Final = 2**31 - 1
"""Kafka has the size of a batch as a signed number of 32 bits."""
MOST_REPLICAS: Final = 2**15 - 1
"""Kafka has the replication factor as a signed number of 16 bits."""

GUARANTEES: Final = ("exactly_once", "at_least_once")


@dataclass(frozen=True)
class Workload:
    """A stream of records, spread over models."""

    rate: float
    """Records per second."""
    models: int
    record_bytes: float
    """Bytes of a record's value."""
    p99_ms: float
    """The delay that at most one answer in a hundred exceeds, from its record on the topic."""
    guarantee: str = GUARANTEES[0]
    hottest: float | None = None
    """Share of all records that belong to the busiest model; None: all models have equal shares."""
    zipf: float | None = None
    """Exponent of Zipf's law: model k has a share in proportion to 1 / k ** zipf. Not with `hottest`."""
    replicas: int = 3
    """Copies of each topic's partitions on brokers."""

    def __post_init__(self) -> None:
        rate, models, size, replicas = self.rate, self.models, self.record_bytes, self.replicas
        rule = f"must be above 0 and at most {MOST_RATE:g} records per second"
        _check("--rate", rate, 0 < rate <= MOST_RATE, rule)
        rule = f"must be at least 1 and at most {MOST_MODELS:g}"
        _check("--models", models, 1 <= models <= MOST_MODELS, rule)
        rule = f"must be at least 1 byte and at most {MOST_BYTES}, the largest batch of Kafka"
        _check("--record-bytes", size, 1 <= size <= MOST_BYTES, rule)
        _check("--p99", self.p99_ms, 0 < self.p99_ms < math.inf, "must be above 0 ms and finite")
        rule = f"must be at least 1 and at most {MOST_REPLICAS}"
        _check("--replication", replicas, 1 <= replicas <= MOST_REPLICAS, rule)
        if self.guarantee not in GUARANTEES:
            message = f"--guarantee {self.guarantee} must be one of {', '.join(GUARANTEES)}"
            raise UsageError(message)
        least = 1.0 / self.models
        if self.hottest is not None and not least * (1 - 1e-9) <= self.hottest <= 1.0:
            message = (
                f"--hottest {self.hottest:g} must be at least {least:.3g} (an equal share of --models "
                f"{self.models}) and at most 1: the busiest model has no less than the mean"
            )
            raise UsageError(message)
        if self.zipf is not None:
            _check("--zipf", self.zipf, 0 <= self.zipf <= MOST_ZIPF, f"must be from 0 to {MOST_ZIPF:g}")
            if self.hottest is not None:
                message = (
                    f"--zipf {self.zipf:g} and --hottest {self.hottest:g} must not be given together: "
                    "the share of the busiest model follows from Zipf's law"
                )
                raise UsageError(message)

    @property
    def hottest_share(self) -> float:
        if self.zipf is not None:
            return hottest_share_of(self.models, self.zipf)
        return 1.0 / self.models if self.hottest is None else self.hottest


def _check(name: str, value: float, is_valid: bool, rule: str) -> None:
    if not is_valid:
        message = f"{name} {value:g} {rule}"
        raise UsageError(message)
