"""The check of purchases: requests, values and costs, compared with each other.

All of them are read with read_committed, in the format of docs/feature-acquisition.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Document = Mapping[str, Any]
Feature = tuple[str, str, str]
"""Model key, instance id, feature name."""

CUT_SHORT: Final = ("deadline", "room")
"""Reasons for an answer before the requested values had come."""


@dataclass
class Purchases:
    """Counts of purchases, and of errors in them."""

    requests: int = 0
    features_asked: int = 0
    values: int = 0
    values_again: int = 0  # values of features that had come before, or were reported as unavailable
    features_charged: int = 0
    cost: float = 0.0
    answers: int = 0
    stops: dict[str, int] = field(default_factory=dict)  # answers by their reason for buying no more
    asked_twice: int = 0  # features requested twice for an instance, and ids of requests used twice
    asked_known: int = 0  # requested features that came with the instance
    asked_wrongly: int = 0  # requests whose cost is not the sum of their features' prices
    charged_twice: int = 0  # features charged twice for an instance
    charged_unasked: int = 0  # never requested, or never delivered
    charged_wrongly: int = 0  # answers whose cost is not the sum of their features' prices
    uncharged: int = 0  # requested, delivered while the answer waited for it, and not charged
    unanswered: int = 0  # requests whose instance has no answer
    refused: int = 0  # dead letters of values
    examples: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        """Keep a few examples for the report."""
        if len(self.examples) < 10:
            self.examples.append(what)

    def wrong(self, *, exactly_once: bool) -> dict[str, int]:
        """Return the counts that violate the guarantee.

        With at-least-once, work repeated after a crash may request other features than before.
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
    """Compare three logs of (model key, document); `brought` holds the features that came with each instance.

    `refused` is the number of value records that became dead letters.
    """
    purchases = Purchases(refused=refused)
    asked = _asked(purchases, requests, prices, brought)
    came, unavailable = _came(purchases, values)
    charged = Counter[Feature]()
    stops = dict[tuple[str, str], str]()
    for key, answer in predictions:
        acquired = answer.get("acquired")
        if acquired is None:
            continue
        instance, names = str(answer["id"]), list(acquired["features"])
        stops[key, instance] = acquired["stop"]
        charged.update((key, instance, name) for name in names)
        purchases.cost += acquired["cost"]
        if not math.isclose(acquired["cost"], sum(prices[name] for name in set(names)), abs_tol=1e-9):
            purchases.charged_wrongly += 1
            purchases.note(f"{key} {instance}: {names} for {acquired['cost']}")
    purchases.answers, purchases.stops = len(stops), dict(Counter(stops.values()))
    purchases.features_charged = charged.total()
    purchases.charged_twice = _beyond_first(purchases, charged, "charged again")
    for feature in charged.keys() - (asked.keys() & came):
        purchases.charged_unasked += 1
        purchases.note(f"{feature}: charged, {'never delivered' if feature in asked else 'not asked for'}")
    for feature in asked.keys() & came - unavailable - charged.keys():
        stop = stops.get(feature[:2])
        if stop is not None and stop not in CUT_SHORT:
            purchases.uncharged += 1
            purchases.note(f"{feature}: delivered and not charged, the answer ended with {stop}")
    open_still = {feature[:2] for feature in asked} - stops.keys()
    purchases.unanswered = len(open_still)
    for place in sorted(open_still)[:3]:
        purchases.note(f"{place}: requested, and not answered")
    return purchases


def _asked(
    purchases: Purchases,
    requests: Iterable[tuple[str, Document]],
    prices: Mapping[str, float],
    brought: Mapping[tuple[str, str], frozenset[str]],
) -> Counter[Feature]:
    asked, ids = Counter[Feature](), Counter[str]()
    for key, request in requests:
        purchases.requests += 1
        instance, names = str(request["instance_id"]), list(request["features"])
        ids[request["request_id"]] += 1
        asked.update((key, instance, name) for name in names)
        free = brought.get((key, instance), frozenset[str]())
        if known_names := sorted({*names} & ({*request["known"]} | free)):
            purchases.asked_known += len(known_names)
            purchases.note(f"{key} {instance}: {known_names} requested, and known")
        if not math.isclose(request["cost"], sum(prices[name] for name in names), abs_tol=1e-9):
            purchases.asked_wrongly += 1
            purchases.note(f"{key} {instance}: {names} offered for {request['cost']}")
    purchases.features_asked = asked.total()
    purchases.asked_twice = _beyond_first(purchases, asked, "requested again")
    purchases.asked_twice += sum(n - 1 for n in ids.values())
    return asked


def _came(purchases: Purchases, values: Iterable[tuple[str, Document]]) -> tuple[set[Feature], set[Feature]]:
    came, unavailable = set[Feature](), set[Feature]()
    for key, value in values:
        purchases.values += 1
        for member, into in (("features", came), ("unavailable", unavailable)):
            for name in value.get(member, ()):
                feature = key, str(value["id"]), name
                purchases.values_again += feature in came or feature in unavailable
                into.add(feature)
    return came, unavailable


def _beyond_first(purchases: Purchases, counts: Counter[Feature], what: str) -> int:
    for feature, n in counts.items():
        if n > 1:
            purchases.note(f"{feature}: {what}")
    return sum(n - 1 for n in counts.values())
