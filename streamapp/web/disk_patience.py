"""Patience with a disk that is full or cannot be written: what has to be stored waits for room."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from typing import Final

logger = logging.getLogger(__name__)

DISK_S: Final = 1.0  # between two attempts


def store_patiently(what: str, store: Callable[[], object], stop: threading.Event) -> bool:
    """Run `store`, again and again while it has no room, until `stop`; return whether it succeeded.

    `what`: the thing to be stored, for the log. A file that is damaged raises sqlite3.DatabaseError.
    """
    failed = False
    while True:
        try:
            store()
        except sqlite3.OperationalError as error:
            if not failed:
                logger.error("%s cannot be stored, it is tried again: %s", what, error)
            failed = True
            if stop.wait(DISK_S):
                return False
        else:
            if failed:
                logger.info("records are stored again")
            return True
