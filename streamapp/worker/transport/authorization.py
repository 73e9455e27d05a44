# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Authorization: a denial by the broker ends the worker with an error that names the missing right.

Waiting would not help, and aiokafka reports nothing at all to a consumer that has no assignment yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from aiokafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError

from streamapp.errors import StreamappError
from topics.clients.access import Access, Kind

DENIALS: Final = (GroupAuthorizationFailedError, TopicAuthorizationFailedError)


class AccessDeniedError(StreamappError):
    """A right that a worker needs was not granted, or was taken away."""

    def __init__(self, denial: Exception, access: Access) -> None:
        """denial: aiokafka's, which holds the group's name, or one or several topics'."""
        named = denial.args[0] if denial.args else ""
        names = [named] if isinstance(named, str) else sorted(named)
        kind: Kind = "group" if isinstance(denial, GroupAuthorizationFailedError) else "topic"
        super().__init__("; ".join(access.denied(kind, name, "Read") for name in names))


def report_denials(coordinator: Any, access: Access, report: Callable[[AccessDeniedError], None]) -> None:
    """Pass denials of the group's coordinator to `report`; the coordinator then waits to be closed."""
    push = coordinator._push_error_to_user

    async def push_or_report(error: Exception) -> None:
        if isinstance(error, DENIALS):
            report(AccessDeniedError(error, access))
            await asyncio.wait([coordinator._closing])
        else:
            await push(error)

    coordinator._push_error_to_user = push_or_report
