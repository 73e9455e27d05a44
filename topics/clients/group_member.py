"""Group member: the member of a consumer group in whose name a transaction commits offsets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a consumer group, for offsets that count only if the member has its place (KIP-447)."""

    group: str
    generation: int = -1  # -1: the group has no members
    member: str = ""
    instance: str | None = None  # the name of a static member
