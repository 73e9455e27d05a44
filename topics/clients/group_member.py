"""Group member: the member of a consumer group in whose name a transaction commits offsets."""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a consumer group, for offsets that count only if the member has its place (KIP-447)."""

    group: str
    generation: int = -1  # -1: the group has no members
    member: str = ""
    instance: str | None = None  # the name of a static member

    def for_librdkafka(self) -> bytes:
        """Return the member in librdkafka's serialisation (tests/contract/test_group_member.py)."""
        instance = b"\1" if self.instance is None else b"\0" + self.instance.encode() + b"\0"
        generation = struct.pack("<i", self.generation)
        return b"CGMDv2:" + generation + self.group.encode() + b"\0" + self.member.encode() + b"\0" + instance
