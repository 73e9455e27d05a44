"""Changelog of snapshots: their chunks read from the topic, without a table."""

from __future__ import annotations

from functools import cached_property

from streamapp.worker.restore.tail import Log


class Changelog:
    """The parts of one partition, read at the first request for a part."""

    def __init__(self, log: Log, topic: str, partition: int, *, removed: bool = False) -> None:
        """`log`: for this changelog alone; `removed`: also return parts that were removed since they were
        written.

        Removed parts are there as long as the topic has them; a worker's table does not have them. They do no
        harm: no key is ever written twice, and checksums show which snapshots are whole.
        """
        self._log = log
        self._topic = topic
        self._partition = partition
        self._removed = removed

    def get(self, key: bytes) -> bytes | None:
        """Return a part."""
        return self._all.get(key)

    @cached_property
    def _all(self) -> dict[bytes, bytes]:
        values: dict[bytes, bytes] = {}
        self._log.open(self._topic, self._partition)
        for raw in self._log.to_end():
            for key, value in zip(raw.keys, raw.values, strict=True):
                if key is not None and value is not None:
                    values[key] = value
                elif key is not None and not self._removed:
                    values.pop(key, None)
        return values
