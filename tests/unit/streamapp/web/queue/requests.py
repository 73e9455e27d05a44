"""Requests to a label queue, and what it shows of them to annotators."""

from __future__ import annotations

import math
from dataclasses import replace

from streamapp.web.annotation_terms import Terms
from streamapp.web.queue.cards import Request
from streamapp.web.queue.label_queue import LabelQueue

NOW = 1_000_000
TERMS = Terms(lease_ms=300, undo_ms=100, open_max=3, jump_ms=10_000)
REQUEST = Request(0, "k", "r", "i", NOW, -1, math.nan, "a", "s", {"x": 1.0, "colour": "<b>"})
WANTED = replace(REQUEST, request_id="q1", instance_id="loan", wanted=("age", "colour"), cost=2.0)


def ask(queue: LabelQueue, *requests: Request) -> None:
    queue.topics.apply(requests, [], {("requests", 0): len(requests)}, NOW)


def named(name: str, utility: float = math.nan, **members: int) -> Request:
    return replace(REQUEST, instance_id=name, request_id=name, utility=utility, **members)  # type: ignore[arg-type]


def ids(queue: LabelQueue, *people: str) -> list[str | None]:
    found = [queue.leases.next_card(who, NOW) for who in people]
    return [None if card is None else card.instance_id for card in found]
