"""The check of purchases: what was asked for, what came and what was paid, each held against the others.

Everything is what a read_committed reader sees, as docs/feature-acquisition.md has it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Document = Mapping[str, Any]
Feature = tuple[str, str, str]
"""Model key, instance id, name."""

CUT_SHORT: Final = ("deadline", "room")
"""Why an answer did not wait for what it had asked for."""


@dataclass
class Purchases:
    """What was bought, and what is wrong with it."""

    requests: int = 0
    features_asked: int = 0
    values: int = 0
    values_again: int = 0  # of features that had come, or were said to be unavailable, before
    features_charged: int = 0
    cost: float = 0.0
    answers: int = 0
    stops: dict[str, int] = field(default_factory=dict)  # answers, by why they asked no more
    asked_twice: int = 0  # features of an instance beyond the first time, and ids of requests
    asked_known: int = 0  # features asked for that came with the instance
    asked_wrongly: int = 0  # requests whose cost is not that of their features
    charged_twice: int = 0  # features of an instance beyond the first time
    charged_unasked: int = 0  # never asked for, or never delivered
    charged_wrongly: int = 0  # answers whose cost is not that of their features, each once
    uncharged: int = 0  # asked for and delivered to who waited for it, and not charged
    unanswered: int = 0  # requests whose instance has no answer
    refused: int = 0  # dead letters of the values
    examples: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        """Keep a few examples for a person."""
        if len(self.examples) < 10:
            self.examples.append(what)

    def wrong(self, *, exactly_once: bool) -> dict[str, int]:
        """Return the counts that break what the guarantee promises.

        At least once, what is done anew after a crash may ask for something else than what was seen before.
        """
        names = ["asked_known", "asked_wrongly", "charged_unasked", "charged_wrongly"]
        if exactly_once:
            names += ["asked_twice", "charged_twice", "uncharged", "unanswered", "refused"]
        return {f"purchases.{name}": getattr(self, name) for name in names if getattr(self, name)}


def check_purchases(
    requests: Iterable[tuple[str, Document]],
    values: Iterable[tuple[str, Document]],
    predictions: Iterable[tuple[str, Document]],
    prices: Mapping[str, float],
    brought: Mapping[tuple[str, str], frozenset[str]],
    refused: int = 0,
) -> Purchases:
    """Compare three logs of (model key, document); `brought`: what came with each instance.

    `refused`: how many records of values became dead letters.
    """
    found = Purchases(refused=refused)
    asked = _asked(found, requests, prices, brought)
    came, unavailable = _came(found, values)
    charged = Counter[Feature]()
    stops = dict[tuple[str, str], str]()
    for key, answer in predictions:
        acquired = answer.get("acquired")
        if acquired is None:
            continue
        instance, names = str(answer["id"]), list(acquired["features"])
        stops[key, instance] = acquired["stop"]
        charged.update((key, instance, name) for name in names)
        found.cost += acquired["cost"]
        if not math.isclose(acquired["cost"], sum(prices[name] for name in set(names)), abs_tol=1e-9):
            found.charged_wrongly += 1
            found.note(f"{key} {instance}: {names} for {acquired['cost']}")
    found.answers, found.stops = len(stops), dict(Counter(stops.values()))
    found.features_charged = charged.total()
    found.charged_twice = _beyond_first(found, charged, "charged again")
    for each in charged.keys() - (asked.keys() & came):
        found.charged_unasked += 1
        found.note(f"{each}: charged, {'never delivered' if each in asked else 'not asked for'}")
    for each in asked.keys() & came - unavailable - charged.keys():
        stop = stops.get(each[:2])
        if stop is not None and stop not in CUT_SHORT:
            found.uncharged += 1
            found.note(f"{each}: delivered and not charged, the answer ended with {stop}")
    open_still = {each[:2] for each in asked} - stops.keys()
    found.unanswered = len(open_still)
    for place in sorted(open_still)[:3]:
        found.note(f"{place}: asked for, and not answered")
    return found


def _asked(
    found: Purchases,
    requests: Iterable[tuple[str, Document]],
    prices: Mapping[str, float],
    brought: Mapping[tuple[str, str], frozenset[str]],
) -> Counter[Feature]:
    asked, ids = Counter[Feature](), Counter[str]()
    for key, request in requests:
        found.requests += 1
        instance, names = str(request["instance_id"]), list(request["features"])
        ids[request["request_id"]] += 1
        asked.update((key, instance, name) for name in names)
        free = brought.get((key, instance), frozenset[str]())
        if known := sorted({*names} & ({*request["known"]} | free)):
            found.asked_known += len(known)
            found.note(f"{key} {instance}: {known} asked for, and known")
        if not math.isclose(request["cost"], sum(prices[name] for name in names), abs_tol=1e-9):
            found.asked_wrongly += 1
            found.note(f"{key} {instance}: {names} offered for {request['cost']}")
    found.features_asked = asked.total()
    found.asked_twice = _beyond_first(found, asked, "asked for again")
    found.asked_twice += sum(n - 1 for n in ids.values())
    return asked


def _came(found: Purchases, values: Iterable[tuple[str, Document]]) -> tuple[set[Feature], set[Feature]]:
    came, unavailable = set[Feature](), set[Feature]()
    for key, value in values:
        found.values += 1
        for member, into in (("features", came), ("unavailable", unavailable)):
            for name in value.get(member, ()):
                each = key, str(value["id"]), name
                found.values_again += each in came or each in unavailable
                into.add(each)
    return came, unavailable


def _beyond_first(found: Purchases, counts: Counter[Feature], what: str) -> int:
    for each, n in counts.items():
        if n > 1:
            found.note(f"{each}: {what}")
    return sum(n - 1 for n in counts.values())
