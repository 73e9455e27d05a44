"""Without a group: properties of a consumer that assigns partitions to itself, and commits nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

QUEUED_KB: Final = 16_384  # what librdkafka fetches ahead


def without_group(kafka: Mapping[str, Any], begin: str) -> dict[str, Any]:
    """Return the properties of such a client; it reads what is committed, and hears of ends of partitions.

    begin: `auto.offset.reset`, for an offset that the log does not have.
    """
    return {
        **{key: value for key, value in kafka.items() if key != "group.instance.id"},
        "group.id": "none",  # librdkafka wants a name; nothing is committed and no group is joined
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": begin,
        "isolation.level": "read_committed",
        "queued.max.messages.kbytes": QUEUED_KB,
    }
