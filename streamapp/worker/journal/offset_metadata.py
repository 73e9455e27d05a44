"""Offset metadata: the topic that a committed offset belongs to, by its id and its number of partitions.

A topic that is deleted and made anew has another id, and other records: old positions say nothing of them. A
topic that was given more partitions has the records of a key elsewhere than its model.
"""

from __future__ import annotations

import re
from typing import Final

PREFIX: Final = "topic-id="

COUNT: Final = re.compile(r"partitions=(\d+) ?")
"""Stands before the id: a release that does not know it then reads no id, and goes on."""

UNKNOWN: Final = ""
"""The id of a topic whose broker gives it none (before Kafka 2.8), or with which nothing was committed."""

_ANEW: Final = " anew"
"""Follows the id if an operator has changed what the partition goes on with while it had no owner."""


def metadata_of(topic_id: str, partitions: int | None = None, *, anew: bool = False) -> str:
    """Return the metadata of an offset of a topic with so many partitions (None: not known).

    `anew`: a task at this offset is not to be kept.
    """
    words = [] if partitions is None else [f"partitions={partitions}"]
    if topic_id != UNKNOWN:
        words.append(PREFIX + topic_id)
    return " ".join(words) + (_ANEW if anew else "")


def id_in(metadata: str | None) -> str:
    """Return the id of the topic that an offset is of, as its metadata has it."""
    said = COUNT.sub("", (metadata or "").removesuffix(_ANEW), count=1)
    return said.removeprefix(PREFIX) if said.startswith(PREFIX) else UNKNOWN


def partitions_in(metadata: str | None) -> int | None:
    """Return how many partitions the topic had when the offset was committed; None: that was not noted."""
    found = COUNT.match(metadata or "")
    return int(found[1]) if found else None


def is_anew(metadata: str | None) -> bool:
    """Whether a task at an offset is not to be kept, as the offset's metadata has it."""
    return (metadata or "").endswith(_ANEW)
