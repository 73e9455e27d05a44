"""Shared bytes: what names, schemas and plans take, counted once however many models have them.

The count belongs to the process. What is made says how much it takes, and takes it back when the last model
that has it is gone: both happen where the object itself is made and given up, so that the sum is right
whoever shares what with whom.
"""

from __future__ import annotations

import threading
from typing import Final

INTERNED: Final = 250
"""Bytes of an object that is found again by what it holds: itself, and its place in a weak dictionary."""


class Tally:
    """A sum of bytes. What counts here has it as an attribute: at exit modules are gone before objects."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # an object may be given up while another one is being made
        self.bytes = 0

    def hold(self, size: int) -> None:
        with self._lock:
            self.bytes += size

    def give_up(self, size: int) -> None:
        with self._lock:
            self.bytes -= size


TALLY: Final = Tally()
