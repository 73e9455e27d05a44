"""The Faust application of a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faust

from streamapp import transport
from streamapp.agents import add_agent
from streamapp.task_manager import TaskManager
from streamapp.transport.schema import DeliverySchema


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How runs are cut (`input.skew.ms`, `max.task.idle.ms`, `max.poll.records`)."""

    skew_ms: int
    max_idle_ms: int
    max_records: int


class App(faust.App):  # type: ignore[misc]
    """A Faust app whose sources go live when a rebalance is over."""

    task_manager: TaskManager
    source_topics: Sequence[str]  # in causal order
    run_options: RunOptions
    fetch_options: dict[str, Any]  # attribute of aiokafka's consumer (without underscore) -> value

    def on_rebalance_end(self) -> None:
        super().on_rebalance_end()
        self.consumer.go_live()
