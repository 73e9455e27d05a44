# ruff: noqa: SLF001 - what is used of Faust's consumer is held by tests/contract/test_transport_faust.py
"""Changelogs of Faust's tables: which are read, and what is done with their records."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from streamapp.errors import ChangelogError, NotYetError
from streamapp.worker.driver.faust_app import App
from streamapp.worker.driver.thread import ConsumerThread

logger = logging.getLogger(__name__)


class Changelogs:
    """Reads the changelogs of a consumer."""

    def __init__(self, consumer: driver.Consumer, thread: ConsumerThread) -> None:
        self._consumer, self._thread = consumer, thread
        self.standbys_are_read = False  # fetched records of standbys stay in Faust's queue

    @property
    def _app(self) -> App:
        return cast(App, self._consumer.app)

    def wanted(self) -> set[TP]:
        """Return the partitions of tables that Faust wants to read: those in recovery, and standbys.

        Faust resumes standbys during a rebalance, and then empties its queues once more: records given to
        them until then would be missing for ever.
        """
        changelogs = self._app.tables.changelog_topics
        active = self._consumer._active_partitions
        if active is None:  # else Faust checks the type of each of them, at each call
            active = self._consumer._get_active_partitions()
        unread = {tp for tp in active if tp.topic in changelogs}
        return unread if self.standbys_are_read else unread - self.recovery.standby_tps

    @property
    def recovery(self) -> Recovery:
        """Faust's reader of changelogs."""
        return cast(TableManager, self._app.tables).recovery

    async def pass_on(self, records: Mapping[TP, list[Any]]) -> None:
        """Give a table's records to Faust, one event each: they are large and few."""
        consumer, generation = self._consumer, self._app.consumer_generation_id
        recovery = self.recovery
        for tp, fetched in records.items():
            self._app.wiring.progress.read_changelog(
                len(fetched),
                sum(len(record.value or b"") for record in fetched),
                standby=tp in recovery.standby_tps,
                left=max(0, recovery.active_remaining_total()),
            )
            for record in fetched:
                if not consumer.flow_active or generation != self._app.consumer_generation_id:
                    return  # recovery starts over, and seeks
                message = consumer._to_message(tp, record)
                await self._consumer.wait_first(
                    self._consumer.callback(message), self._consumer.suspend_flow.wait()
                )

    async def go_on(self, lost: Mapping[TP, int]) -> None:
        """Continue reading changelogs that lack our position; ChangelogError if that is impossible.

        Records deleted before we read them may be missing from a snapshot; a restore from it detects that.
        """
        try:
            logs = await self._thread.log_ranges(lost)
        except NotYetError as reason:
            logger.warning("Positions out of range are looked at again: %s", reason)
            return
        for tp, position in lost.items():
            first, end = logs[tp]
            if position > end:
                message = (
                    f"topic {tp.topic} partition {tp.partition} has offsets {first} to {end}, but this "
                    f"worker has read it up to {position}"
                )
                raise ChangelogError(message, str(self._app.conf.datadir))
            if position < first:
                logger.warning(
                    "topic %s partition %d: offsets %d to %d were deleted before they were read",
                    *(tp.topic, tp.partition, position, first - 1),
                )
        await self._thread.seek_all({tp: max(at, logs[tp][0]) for tp, at in lost.items()})
