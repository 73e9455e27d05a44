"""Tables of the Faust app: they start at once."""

from __future__ import annotations

import logging

from faust.tables.manager import TableManager


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
