"""Offset metadata: the topic that a committed offset belongs to, by its id and its number of partitions.

A topic that is deleted and created again has another id and other records, to which old positions do not
apply. In a topic that was given more partitions, the records of a key may be in another partition than the
key's model.
"""

from __future__ import annotations

import re
from typing import Final

PREFIX: Final = "topic-id="

COUNT: Final = re.compile(r"partitions=(\d+) ?")
"""Stands before the id: an earlier release, which does not support it, then finds no id, and continues."""

UNKNOWN: Final = ""
"""The id of a topic whose broker gives it no id (before Kafka 2.8), or whose offsets were committed without
one.
"""

_ANEW: Final = " anew"
"""Follows the id if an operator has changed the state of the partition while it had no owner."""


def metadata_of(topic_id: str, partitions: int | None = None, *, anew: bool = False) -> str:
    """Return the metadata of an offset of a topic with `partitions` partitions (None: not known).

    `anew`: a worker must not keep a task that it has at this offset.
    """
    words = [] if partitions is None else [f"partitions={partitions}"]
    if topic_id != UNKNOWN:
        words.append(PREFIX + topic_id)
    return " ".join(words) + (_ANEW if anew else "")


def id_in(metadata: str | None) -> str:
    """Return the id of the topic that an offset belongs to, from the offset's metadata."""
    rest = COUNT.sub("", (metadata or "").removesuffix(_ANEW), count=1)
    return rest.removeprefix(PREFIX) if rest.startswith(PREFIX) else UNKNOWN


def partitions_in(metadata: str | None) -> int | None:
    """Return how many partitions the topic had when the offset was committed; None: that was not noted."""
    match = COUNT.match(metadata or "")
    return int(match[1]) if match else None


def is_anew(metadata: str | None) -> bool:
    """Return whether the metadata of an offset forbids a worker to keep a task that it has at this offset."""
    return (metadata or "").endswith(_ANEW)
