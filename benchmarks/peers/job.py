"""Job: the command-line arguments of every peer, and the signal that ends it."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Final

LINGER_MS: Final = 5.0
"""The default of librdkafka, and of Java's clients since Kafka 4.0."""

COMMIT_MS: Final = 100  # as often as our worker does by default


@dataclass(frozen=True)
class Job:
    """One pass over a topic: read `source` from its start, answer each record to its partition of `sink`."""

    bootstrap: str
    source: str
    sink: str
    group: str
    format: str
    leaf: str
    low_latency: bool
    linger_ms: float = LINGER_MS
    """Linger time of its producer."""
    guarantee: str = "at_least_once"
    """Peers in Python support only this guarantee."""
    threads: int = 1
    """Threads of Kafka Streams."""
    commit_ms: int = COMMIT_MS
    """Time between commits; peers in Python use the default of their client."""
    partition: int | None = None
    """The only partition that the echo of confluent-kafka reads; None: all partitions of its group."""

    @classmethod
    def from_arguments(cls, arguments: Sequence[str] | None = None) -> Job:
        parser = argparse.ArgumentParser()
        parser.add_argument("--bootstrap", required=True)
        parser.add_argument("--source", required=True)
        parser.add_argument("--sink", required=True)
        parser.add_argument("--group", required=True)
        parser.add_argument("--format", choices=("json", "packed", "arrow"), default="json")
        parser.add_argument("--leaf", choices=("mc", "nb", "nba"), default="mc")
        parser.add_argument("--partition", type=int)
        parser.add_argument("--low-latency", action="store_true")
        parser.add_argument("--linger-ms", type=float, default=LINGER_MS)
        return cls(**vars(parser.parse_args(arguments)))

    def command(self, module: str) -> list[str]:
        """Return the arguments that start peer `module` with this job (after the interpreter)."""
        words = ["-m", module]
        for name in ("bootstrap", "source", "sink", "group", "format", "leaf"):
            words += [f"--{name}", getattr(self, name)]
        words += ["--linger-ms", str(self.linger_ms)]
        words += [] if self.partition is None else ["--partition", str(self.partition)]
        return [*words, "--low-latency"] if self.low_latency else words


class Stop:
    """True once SIGTERM or SIGINT has come; the loops check it between polls."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True

    def __bool__(self) -> bool:
        return self.asked
