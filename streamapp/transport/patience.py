"""A broker that was reached once is waited for: also by the clients that Faust opens later in the start.

A worker looks at its topics before anything else, and ends if no broker answers. Then it loads its kernels
and opens aiokafka's clients, seconds later: if the broker restarts just then, aiokafka gives up at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from aiokafka.errors import KafkaConnectionError

logger = logging.getLogger(__name__)

AGAIN_S: Final = 0.5


def be_patient(client: Any, stopping: Callable[[], bool], again_s: float = AGAIN_S) -> None:
    """Have aiokafka's client wait for its first broker, until the worker is told to stop."""
    bootstrap = client.bootstrap

    async def wait_for_broker() -> None:
        said = False
        while True:
            try:
                await bootstrap()
            except KafkaConnectionError as error:
                if stopping():
                    raise
                if not said:
                    logger.warning("the broker has gone away, waiting for it: %s", error)
                said = True
                await asyncio.sleep(again_s)  # there is nothing to be told by: nobody is there
            else:
                return

    client.bootstrap = wait_for_broker
