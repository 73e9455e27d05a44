"""Membership: a worker as a member of its group, which commits in that name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Membership:
    """An incarnation in the group: a static member that restarts keeps the generation, not the member id."""

    generation: int
    member: str
    instance: str | None
