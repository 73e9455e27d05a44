"""Traced pipeline: a pipeline whose groups of runs and stages have spans."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.processing.pipeline import Pipeline, TaskAndRun
from streamapp.worker.processing.results import Results
from streamapp.worker.task.instances.leading_records import STEP
from streamapp.worker.telemetry.traces import GroupSpan, Traces


class TracedPipeline(Pipeline):
    """A pipeline for one worker, which processes one group after the other."""

    def __init__(self, *args: Any, traces: Traces, **options: Any) -> None:
        """Take the arguments of a pipeline, and the traces of the worker."""
        super().__init__(*args, **options)
        self._traces = traces
        self._group: GroupSpan | None = None  # None: the sampler leaves it out
        self._encoder = cast(Encoder, TracedEncoder(self._encoder, lambda: self._group))
        self._join, self._rounds.join = self._rounds.join, self._joined

    async def process(
        self, work: Sequence[TaskAndRun], is_ours: Callable[[int], bool], most: int = STEP
    ) -> list[Results | Exception | None]:
        """Return the results of each run of a group, as a pipeline without traces does."""
        group = self._group = self._traces.begin([run for _, run in work])
        try:
            outcomes = await super().process(work, is_ours, most)
        except BaseException as error:
            if group is not None:
                self._traces.failed(group, error)
            raise
        finally:
            self._group = None
        if group is not None:
            parts = [(o.run, o.effects) if isinstance(o, Results) else o for o in outcomes]
            self._traces.processed(group, parts)
        return outcomes

    def _decoded(self, work: Sequence[TaskAndRun]) -> list[Any]:
        if self._group is None or not work:
            return super()._decoded(work)
        began = time.time_ns()
        batches = super()._decoded(work)
        self._group.mark_decoded(began)
        self._group.take_batches([run for _, run in work], batches)
        return batches

    def _joined(self, runs: Any, limits: Any) -> Any:
        """Decode runs together; None: they have to be decoded one by one."""
        if self._group is None:
            return self._join(runs, limits)
        began = time.time_ns()
        joined = self._join(runs, limits)
        self._group.mark_decoded(began, is_used=joined is not None)
        return joined


class TracedEncoder:
    """An encoder whose calls are a stage of the group that is processed."""

    def __init__(self, encoder: Encoder, group: Callable[[], GroupSpan | None]) -> None:
        self._encoder = encoder
        self._group = group

    def encode_runs(self, runs: Any) -> Any:
        """Encode the effects of runs."""
        return self._timed(self._encoder.encode_runs, runs)

    def encode_round(self, answers: Any) -> Any:
        """Encode the answers of a round."""
        return self._timed(self._encoder.encode_round, answers)

    def _timed(self, encode: Callable[[Any], Any], effects: Any) -> Any:
        group = self._group()
        if group is None:
            return encode(effects)
        began = time.time_ns()
        try:
            return encode(effects)
        finally:
            group.mark_encoded(began)
