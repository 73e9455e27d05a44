"""Sources: the input topics of a partition, a row each, in causal order.

All code that handles the sources (driver, task, journal, replay, metrics, commands) uses this table: a new
input topic is a new row here and a declaration in `topics.definitions.TopicNames`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar

from topics.definitions import TopicNames

if TYPE_CHECKING:
    from streamapp.worker.task.effects.effects import Effects
    from streamapp.worker.task.partition_state import PartitionState
    from streamapp.worker.task.pending.event_time import RunTime
    from topics.codecs.compiled.small_runs import JoinedRuns
    from topics.codecs.limits import Limits
    from topics.columns.records import Controls, FeatureValues, Instances, Labels, RawRecords

SourceName = Literal["controls", "instances", "feature_values", "labels"]

Positions = Mapping[SourceName, int]
"""The offset of the next record of each source in the table, by the source's name."""

Batch = TypeVar("Batch")


class SourceRun(Protocol):
    """A run of one source on its way through a task."""

    def process(self) -> None:
        """Process all records of the run."""


@dataclass(frozen=True, slots=True)
class Code(Generic[Batch]):
    """The functions that decode and process the records of a source."""

    decode: Callable[[Sequence[RawRecords], Limits], list[Batch]]  # runs of any partitions
    run: Callable[[PartitionState, RawRecords, Batch, RunTime, Effects], SourceRun]
    join: Callable[[Sequence[RawRecords], Limits], tuple[JoinedRuns, list[int]] | None] | None = None
    """Decodes runs as columns over all of them, and returns the indices of these runs; None: it cannot."""


def one_by_one(
    decode: Callable[[RawRecords, Limits], Batch],
) -> Callable[[Sequence[RawRecords], Limits], list[Batch]]:
    """Return a function that decodes runs, each with a call of its own."""
    return lambda runs, limits: [decode(raw, limits) for raw in runs]


def _controls() -> Code[Controls]:
    from streamapp.worker.task.controls import ControlsRun
    from topics.codecs import decode_controls

    return Code(one_by_one(decode_controls), ControlsRun)


def refused_controls() -> Code[Controls]:
    """Return the functions for controls of a journal that were refused when they were first processed."""
    from streamapp.worker.task.controls import RefusedControlsRun
    from topics.codecs import decode_controls

    return Code(one_by_one(decode_controls), RefusedControlsRun)


def _instances() -> Code[Instances]:
    from streamapp.worker.task.acquisition.episode_opening import instances_run
    from topics.codecs.compiled.decode import InstanceDecoder

    decoder = InstanceDecoder()
    return Code(decoder.decode, instances_run, decoder.join)


def _feature_values() -> Code[FeatureValues]:
    from streamapp.worker.task.acquisition.values import FeatureValuesRun
    from topics.codecs import decode_feature_values

    return Code(one_by_one(decode_feature_values), FeatureValuesRun)


def _labels() -> Code[Labels]:
    from streamapp.worker.task.labels import LabelsRun
    from topics.codecs.compiled.decode import LabelDecoder

    return Code(LabelDecoder().decode, LabelsRun)


@dataclass(frozen=True, slots=True)
class Source:
    """An input topic."""

    name: SourceName
    load: Callable[[], Code[Any]]  # loads compiled kernels and codecs, so only for processing
    journalled: bool = False  # the journal holds its records: a replay does not read the topic
    optional: bool = False  # an installation may lack its topic
    may_be_dead_letter: bool = True  # its records can be skipped, and sent back

    def topic(self, names: TopicNames) -> str:
        """Return its topic."""
        topic: str = getattr(names, self.name)
        return topic


SOURCES: Final[Mapping[SourceName, Source]] = {
    source.name: source
    for source in (
        Source("controls", _controls, journalled=True),
        Source("instances", _instances),
        Source("feature_values", _feature_values, optional=True),
        Source("labels", _labels),
    )
}
"""In causal order: a control comes before the instances it is for, an instance before the values of its
features, these before its label."""


def source_topics(names: TopicNames) -> dict[SourceName, str]:
    """Return the topic of each source, in causal order; an optional source only if its topic exists."""
    return {
        name: source.topic(names) for name, source in SOURCES.items() if names.features or not source.optional
    }


def positions_of(known: Mapping[Any, int]) -> Positions:
    """Return positions in causal order; a source without a known position is at its beginning."""
    return {name: known.get(name, 0) for name in SOURCES}


def named(positions: Positions) -> dict[SourceName, int]:
    """Return positions in their written form: an optional source is left out at its beginning.

    So an installation without such topics writes and reads the same as older releases.
    """
    return {name: positions[name] for name, each in SOURCES.items() if positions[name] or not each.optional}


def in_words(positions: Mapping[SourceName, int | None]) -> str:
    """Return positions with the names of their sources, as `named` has them."""
    return ", ".join(
        f"{source} {'none' if at is None else at}"
        for source, at in positions.items()
        if at or not SOURCES[source].optional
    )
