"""Offset metadata: the id of the topic that a committed offset belongs to.

A topic that is deleted and made anew has another id, and other records: old positions say nothing of them.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "topic-id="

UNKNOWN: Final = ""
"""The id of a topic whose broker gives it none (before Kafka 2.8), or with which nothing was committed."""

_ANEW: Final = " anew"
"""Follows the id if an operator has changed what the partition goes on with while it had no owner."""


def metadata_of(topic_id: str, *, anew: bool = False) -> str:
    """Return the metadata of an offset of a topic; `anew`: a task at this offset is not to be kept."""
    return ("" if topic_id == UNKNOWN else PREFIX + topic_id) + (_ANEW if anew else "")


def id_in(metadata: str | None) -> str:
    """Return the id of the topic that an offset is of, as its metadata has it."""
    said = (metadata or "").removesuffix(_ANEW)
    return said.removeprefix(PREFIX) if said.startswith(PREFIX) else UNKNOWN


def is_anew(metadata: str | None) -> bool:
    """Whether a task at an offset is not to be kept, as the offset's metadata has it."""
    return (metadata or "").endswith(_ANEW)
