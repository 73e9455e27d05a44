"""The worker of echo_worker in which one call of aiokafka lasts until it is cancelled, and then returns.

aiokafka's tasks lose cancellations like this: a task that awaits its heartbeat, which is cancelled, goes on.

`python -m tests.broker.lost_cancellation_worker METHOD`: a coroutine method of GroupCoordinator; its second
call, in the second rebalance, is the one.
"""

import asyncio
import contextlib
import itertools
import sys
from typing import Any

from aiokafka.consumer.group_coordinator import GroupCoordinator

from streamapp.errors import StreamappError
from tests.broker.echo_worker import main


def lose_cancellation(method: str) -> None:
    """Change a method of aiokafka's coordinator."""
    unchanged, calls = getattr(GroupCoordinator, method), itertools.count(1)

    async def changed(self: GroupCoordinator, *given: Any) -> Any:
        if next(calls) == 2:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        return await unchanged(self, *given)

    setattr(GroupCoordinator, method, changed)


if __name__ == "__main__":
    lose_cancellation(sys.argv[1])
    try:
        sys.exit(main())
    except StreamappError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
