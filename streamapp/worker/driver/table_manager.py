"""Tables of the Faust app: they start at once."""

from __future__ import annotations

import logging
from typing import Any

from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.types import TP


class OpenCopies(Recovery):
    """Faust's reader of changelogs, without those whose copy the disk does not let be opened.

    Such a copy is opened later, and the next rebalance then reads its changelog.
    """

    logger = logging.getLogger("faust.kafkabatch")  # keeps service messages out of our log

    def add_active(self, table: Any, tp: TP) -> None:
        """Read the changelog of a partition that is to be processed here."""
        if table.data.reads(tp.partition):
            super().add_active(table, tp)

    def add_standby(self, table: Any, tp: TP) -> None:
        """Read the changelog of a partition that is processed elsewhere."""
        if table.data.reads(tp.partition):
            super().add_standby(table, tp)

    def _add(self, table: Any, tp: TP, offsets: Any) -> None:
        offsets.pop(tp, None)  # a copy that was made anew has nothing of what was read before
        super()._add(table, tp, offsets)


class Tables(TableManager):
    """Faust's table manager without its second of waiting for tables.

    Faust waits because modules of an application may add tables after its start. A worker adds its table
    before (`streamapp.worker.worker`).
    """

    logger = logging.getLogger("faust.kafkabatch")  # keeps service messages out of our log

    async def on_start(self) -> None:
        """Read the changelogs of the tables from now on."""
        await self._update_channels()
        await self.recovery.start()

    @property
    def recovery(self) -> Recovery:
        """The reader of changelogs."""
        if self._recovery is None:
            self._recovery = OpenCopies(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery
