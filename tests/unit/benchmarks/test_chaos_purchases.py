"""The check of purchases finds every way in which a log can be broken, and nothing in one that is right."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.chaos.acquiring import PRICES, SPECS, controls
from benchmarks.chaos.purchases import Purchases, check_purchases
from core.spec import Spec
from topics.codecs import encode_instances
from topics.columns.records import Features

KEY = "buys"
PRICE = {"x": 1.0, "y": 2.5, "z": 4.0}
BROUGHT = {(KEY, name): frozenset({"w"}) for name in "abcd"}

Logs = dict[str, list[tuple[str, dict[str, Any]]]]


def request(number: int, instance: str, features: list[str]) -> tuple[str, dict[str, Any]]:
    cost = sum(PRICE[name] for name in features)
    return KEY, {
        "request_id": f"0-{instance}-q{number}",
        "instance_id": instance,
        "features": features,
        "cost": cost,
        "known": {"w": 1.0},
    }


def answer(instance: str, features: list[str], stop: str = "one_region") -> tuple[str, dict[str, Any]]:
    cost = sum(PRICE[name] for name in features)
    return KEY, {"id": instance, "acquired": {"features": features, "cost": cost, "stop": stop}}


def sound() -> Logs:
    """Return four instances: two questions; one that is half unavailable; an answer too early; nothing."""
    return {
        "requests": [
            request(1, "a", ["x"]),
            request(2, "a", ["y"]),
            request(1, "b", ["x", "z"]),
            request(1, "c", ["z"]),
        ],
        "values": [
            (KEY, {"id": "a", "features": {"x": 1.0}}),
            (KEY, {"id": "a", "features": {"x": 1.0}}),  # again
            (KEY, {"id": "b", "features": {"z": 3.0}, "unavailable": {"x": "no"}}),
            (KEY, {"id": "a", "features": {"y": 2.0}}),
            (KEY, {"id": "c", "features": {"z": 2.0}}),  # late
        ],
        "predictions": [
            answer("d", [], "exhausted"),
            answer("a", ["x", "y"]),
            answer("b", ["z"]),
            answer("c", [], "deadline"),
            (KEY, {"id": "offline"}),
        ],
    }


def judged(logs: Logs, refused: int = 0) -> Purchases:
    return check_purchases(
        logs["requests"], logs["values"], logs["predictions"], PRICE, BROUGHT, refused=refused
    )


def test_a_sound_log_has_nothing_wrong_and_is_counted() -> None:
    found = judged(sound())
    assert found.wrong(exactly_once=True) == {} and found.examples == []
    counts = (found.requests, found.features_asked, found.values, found.values_again, found.features_charged)
    assert counts == (4, 5, 5, 1, 3)
    assert (found.cost, found.answers) == (7.5, 4)
    assert found.stops == {"exhausted": 1, "one_region": 2, "deadline": 1}


def ask_again(logs: Logs) -> None:
    logs["requests"].append(request(3, "a", ["x"]))


def repeat_a_request(logs: Logs) -> None:
    logs["requests"].append(logs["requests"][3])


def use_an_id_for_two_requests(logs: Logs) -> None:
    logs["requests"][1][1]["request_id"] = logs["requests"][0][1]["request_id"]


def ask_for_what_is_known(logs: Logs) -> None:
    logs["requests"][3][1]["known"]["z"] = 1.0


def ask_for_another_price(logs: Logs) -> None:
    logs["requests"][2][1]["cost"] = 1.0


def charge_twice_in_an_answer(logs: Logs) -> None:
    logs["predictions"][1] = answer("a", ["x", "y", "x"])


def charge_in_two_answers(logs: Logs) -> None:
    logs["predictions"].append(logs["predictions"][1])


def charge_another_price(logs: Logs) -> None:
    logs["predictions"][2][1]["acquired"]["cost"] = 5.0


def charge_what_nobody_asked_for(logs: Logs) -> None:
    logs["predictions"][0] = answer("d", ["x"], "exhausted")


def charge_what_never_came(logs: Logs) -> None:
    logs["predictions"][2] = answer("b", ["x", "z"])


def forget_what_was_bought(logs: Logs) -> None:
    logs["predictions"][1] = answer("a", ["x"])


def leave_unanswered(logs: Logs) -> None:
    del logs["predictions"][3]


BROKEN: list[tuple[Callable[[Logs], None], set[str]]] = [
    (ask_again, {"asked_twice"}),
    (repeat_a_request, {"asked_twice"}),
    (use_an_id_for_two_requests, {"asked_twice"}),
    (ask_for_what_is_known, {"asked_known"}),
    (ask_for_another_price, {"asked_wrongly"}),
    (charge_twice_in_an_answer, {"charged_twice", "charged_wrongly"}),
    (charge_in_two_answers, {"charged_twice"}),
    (charge_another_price, {"charged_wrongly"}),
    (charge_what_nobody_asked_for, {"charged_unasked"}),
    (charge_what_never_came, {"charged_unasked"}),
    (forget_what_was_bought, {"uncharged"}),
    (leave_unanswered, {"unanswered"}),
]


@pytest.mark.parametrize(("harm", "names"), BROKEN, ids=lambda each: getattr(each, "__name__", ""))
def test_a_broken_log_is_found(harm: Callable[[Logs], None], names: set[str]) -> None:
    logs = copy.deepcopy(sound())
    harm(logs)
    found = judged(logs)
    assert set(found.wrong(exactly_once=True)) == {f"purchases.{name}" for name in names}
    assert found.examples or harm is use_an_id_for_two_requests


def test_what_came_with_the_instance_counts_as_known_whatever_the_request_says() -> None:
    logs = sound()
    found = check_purchases(
        logs["requests"], logs["values"], logs["predictions"], PRICE, {(KEY, "c"): frozenset({"z"})}
    )
    assert found.wrong(exactly_once=True) == {"purchases.asked_known": 1}


def test_values_that_were_refused_are_told() -> None:
    assert judged(sound(), refused=2).wrong(exactly_once=True) == {"purchases.refused": 2}


def test_at_least_once_may_repeat_itself_but_not_charge_what_it_did_not_get() -> None:
    logs = sound()
    charge_in_two_answers(logs)
    repeat_a_request(logs)
    assert judged(logs).wrong(exactly_once=False) == {}
    charge_what_never_came(logs)
    assert judged(logs).wrong(exactly_once=False) == {"purchases.charged_unasked": 1}


def test_the_models_can_be_made_and_their_records_written() -> None:
    assert all(Spec.parse(spec).acquirer is not None for spec in SPECS.values())
    assert len(controls()) == len(SPECS) and len(PRICES) == 10
    x = Features.of(("x", "y"), np.array([[1.0, float("nan")]]))
    (value,) = encode_instances(x, ids=["1"])
    assert b'"y"' not in value or b'"y":null' in value
