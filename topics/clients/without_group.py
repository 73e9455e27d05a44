"""Without a group: properties of a consumer that assigns partitions to itself and commits nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

QUEUED_KB: Final = 16_384  # bytes that librdkafka prefetches


def without_group(kafka: Mapping[str, Any], begin: str) -> dict[str, Any]:
    """Return the properties of such a client; it reads committed records and reports the ends of partitions.

    `begin` is `auto.offset.reset`, for an offset that the log does not have.
    """
    return {
        **{key: value for key, value in kafka.items() if key != "group.instance.id"},
        "group.id": "none",  # librdkafka requires a name; no group is joined, nothing is committed
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": begin,
        "isolation.level": "read_committed",
        "queued.max.messages.kbytes": QUEUED_KB,
    }
