"""Shared bytes: the memory of names, schemas and plans, counted once for all models that share them.

The count belongs to the process. An object adds its size when it is made and subtracts it when it is freed,
after its last model. So the sum is right for every way of sharing.
"""

from __future__ import annotations

import threading
from typing import Final

INTERNED: Final = 250
"""Bytes of an object that is found by its content: the object, and its entry in a weak dictionary."""


class Tally:
    """A sum of bytes. Classes that use it hold it as an attribute: at exit modules are cleared first."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # an object may be freed while a new object is made
        self.bytes = 0

    def hold(self, size: int) -> None:
        with self._lock:
            self.bytes += size

    def give_up(self, size: int) -> None:
        with self._lock:
            self.bytes -= size


TALLY: Final = Tally()
