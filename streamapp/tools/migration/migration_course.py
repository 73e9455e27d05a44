"""Migration course: source and target, obstacles, and the steps in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.errors import UsageError
from streamapp.tools.migration.advice import unprocessed_in_words
from streamapp.tools.migration.migration import Migration
from streamapp.tools.migration.places import NewPlace, OldPlace
from streamapp.worker.task.task_config import TaskConfig
from topics.clients import admin
from topics.clients.cluster import Cluster
from topics.clients.consumer_group import is_occupied
from topics.definitions import TopicNames
from topics.registry.known_schemas import KnownSchemas


@dataclass(frozen=True, slots=True)
class Course:
    """Source and target of a migration."""

    old: OldPlace
    new: NewPlace
    topics: Sequence[admin.Likeness]
    migration: Migration

    @staticmethod
    def laid(
        kafka: Mapping[str, Any],
        group: str,
        prefixes: tuple[str, str],
        config: TaskConfig,
        *,
        partitions: int | None = None,
        to_group: str | None = None,
        to_servers: str | None = None,
        schemas: KnownSchemas | None = None,
    ) -> Course:
        """Return the course; errors if the old place has no topics, or the new place has unlike topics.

        `kafka`: client properties under Kafka's names; `config`: settings of the workers; `schemas`: of the
        schema registry, if it is in use.
        """
        there = dict(kafka) | ({} if to_servers is None else {"bootstrap.servers": to_servers})
        was, names = _names("--from-prefix", prefixes[0]), _names("--to-prefix", prefixes[1])
        here, other = Cluster(kafka), Cluster(there)
        if was == names and (there == kafka or here.id == other.id):  # a cluster may have many addresses
            where = "" if there == kafka else f": {other.address} is the same cluster"
            message = (
                f"--to-prefix {names.prefix!r} must not be the prefix of the old topics{where}; "
                "choose a new prefix"
            )
            raise UsageError(message)
        old = OldPlace(kafka, group, admin.existing(here, was), config, schemas)
        source_partitions = old.source_partitions  # an error, if the old topics are not complete
        n = partitions or source_partitions
        topics = admin.alike(here, was, other, names, n)
        new = NewPlace(there, to_group or group, names, n)
        return Course(old, new, topics, Migration(old, new, config))

    def obstacles(self, *, leave_behind: bool) -> list[str]:
        """Return the steps that must precede the migration."""
        obstacles = []
        members = self.old.members()
        if members:
            obstacles.append(is_occupied(self.old.group, members).replace(", and start them", ""))
        if self.new.begun():
            obstacles.append(
                f"group {self.new.group} has committed offsets of {self.new.names.prefix}*: workers have "
                "begun there, and the sent models are in effect (see 'grove models list'); to migrate again "
                "choose another --to-prefix"
            )
        others, first = self.new.sent_by_others()
        if others:
            obstacles.append(
                f"{self.new.names.controls} has {others} records that no migration has sent, the first is "
                f"{first}: instances that wait there would be processed before the models, which come "
                "after these records; delete the new topics or choose another --to-prefix, and switch the "
                "producers of controls when the models are there"
            )
        if (unprocessed := unprocessed_in_words(self.migration.count_unprocessed())) and not leave_behind:
            obstacles.append(
                f"{unprocessed} were not processed at the old place: let workers go on there until the lag "
                "is 0 ('grove topics describe'), with the producers stopped or switched, or go on without "
                "these records (--leave-behind)"
            )
        return obstacles

    def go(self, tell: Callable[[str], object] = lambda _: None) -> list[str]:
        """Create topics, send the models, check them; return the names of the created topics.

        `tell`: gets lines of progress while the new topics are not ready yet.
        """
        created = admin.create_alike(Cluster(self.new.kafka), self.topics, tell)
        self.migration.run()
        return created


def _names(option: str, prefix: str) -> TopicNames:
    try:
        return TopicNames(prefix)
    except ValueError as error:
        raise UsageError(str(error).replace("topics.prefix=", f"{option} ", 1)) from None
