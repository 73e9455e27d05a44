"""Exceptions of a restore."""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import version

from streamapp.errors import NotYetError, StreamappError
from topics.registry.registered_schema import SchemaId


class RestoreError(StreamappError):
    """The state of a partition cannot be restored; the text holds the reason and the remedy."""

    def __init__(self, partition: int, reason: str, remedy: str = "") -> None:
        """`remedy`: for a worker; a read-only command shows the reason alone."""
        self.reason = reason
        remedy = remedy or f"'grove models reset --partition {partition}' would give it new models"
        super().__init__(f"partition {partition} cannot be restored: {reason}; {remedy}")


def of_other_release(partition: int, reason: str) -> RestoreError:
    """Return the error for state that another release wrote, and with which that release can go on."""
    remedy = (
        f"this is streamgrove {version('streamgrove')}: run the release that wrote it, or a later one, and "
        f"the partition goes on; 'grove models reset --partition {partition}' would give it new models"
    )
    return RestoreError(partition, reason, remedy)


class SourceLogError(StreamappError):
    """A source topic is not the topic that the models have learned from, or lacks a part of it."""

    def __init__(self, topic: str, partition: int, position: int, first: int, end: int) -> None:
        super().__init__(
            f"topic {topic} has offsets {first} to {end}, but records up to {position} were processed: it "
            f"was created again, or truncated; {ways_out(partition)}"
        )


def ways_out(partition: int) -> str:
    """Return the options of an operator when a source is another topic than before."""
    return (
        f"stop the workers, then 'grove models restore --partition {partition}' lets the models of its "
        f"newest snapshot go on with the topic's present records, "
        f"'grove models reset --partition {partition}' gives it new models"
    )


class AwaitedSchemasError(NotYetError):
    """Records to be replayed name schemas that have not been looked up yet."""

    def __init__(self, first: str, ids: Collection[SchemaId]) -> None:
        """first: an id that is missing; ids: of all schemas that these records need."""
        self.ids = frozenset(ids)
        super().__init__(f"schema {first} is needed to replay records")


class AbandonedError(Exception):
    """The restore was abandoned: the partition is not assigned to this worker any more."""
