"""The whole loop: models ask, people answer by keyboard, models learn; whatever dies meanwhile."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from streamapp.web.users import add_user
from tests.broker.web_rig import PHONE, browser, grove_web, sign_in
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker
from topics.clients.partitioner import partition_of

pytestmark = pytest.mark.broker

SPEC = {
    "learner": {"name": "h-tree", "grace_period": 5},
    "query": "always",
    "budget": {"name": "count", "limit": 1.0},
    "explain": True,
}
KEY = b"shop"
PASSWORD = "correct horse battery"
N = 6  # instances of each part of the story


def produce(place: Installation, first: int) -> None:
    producer = place.producer()
    for number in range(first, first + N):
        value = orjson.dumps({"id": f"i{number}", "features": {"size": number % 2}})
        producer.produce(place.names.instances, value, KEY, partition_of(KEY, place.partitions))
    assert producer.flush(PATIENCE) == 0


def answer(page: Any) -> None:
    """Answer the card that is shown with the truth, what size it has; by name if that has no key yet."""
    from playwright.sync_api import expect

    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("which class has")
    before = heading.inner_text()
    truth = ("even", "odd")[int(page.get_by_role("row").nth(1).get_by_role("cell").nth(1).inner_text())]
    button = page.get_by_role("button", name=re.compile(rf"^{truth} \(.\)$"))
    if button.count():
        page.wait_for_timeout(400)  # a key before the card can have been read is not taken
        page.keyboard.press(button.inner_text()[-2])
    else:
        page.get_by_label("Another class").fill(truth)
        page.get_by_role("button", name="Answer with it").click()
    expect(heading).not_to_have_text(before)


def test_people_teach_a_model_whatever_dies_meanwhile(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "loop.", 2, tmp_path, module="streamapp worker")
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    spec = orjson.dumps(SPEC | {"evaluation": {"every": 1}}).decode()
    users, store = tmp_path / "users.txt", tmp_path / "web.sqlite"
    add_user(users, "ann", PASSWORD)
    add_user(users, "bob", PASSWORD)
    options = ("--users", str(users), "--undo-seconds", "0")

    def learned() -> int:
        return max((evaluation["labels"] for evaluation in place.read(place.names.evaluations)), default=0)

    def wait_for(n: int) -> None:
        wait_until(lambda: learned() == n, PATIENCE, lambda: f"{learned()} of {n} labels are learned")

    with browser() as chromium:
        people = [chromium.new_context(viewport=size).new_page() for size in (PHONE, None)]
        with place.worker("w", GROVE_MODEL_SPEC=spec) as worker:
            worker.wait_until_ready()
            with grove_web(kafka, place.names, store, *options) as address:
                for page, name in zip(people, ("ann", "bob"), strict=True):
                    page.goto(address)
                    sign_in(page, name, PASSWORD)
                produce(place, 0)
                for number in range(N):  # two at once: they never have the same card
                    answer(people[number % 2])
                wait_for(N)
                produce(place, N)
                answer(people[0])
                worker.kill()  # while people go on
                for number in range(N - 1):
                    answer(people[number % 2])
        with place.worker("w", GROVE_MODEL_SPEC=spec) as worker:
            worker.wait_until_ready()
            wait_for(2 * N)
            produce(place, 2 * N)
            with grove_web(
                kafka, place.names, store, *options, "--port", address.split(":")[-1][:-1]
            ) as again:
                assert again == address
                for page in people:  # the process is another one; who was signed in still is
                    page.goto(f"{address}label")
                answer(people[0])
                people[0].reload()
                for number in range(N - 1):
                    answer(people[number % 2])
                wait_for(3 * N)
            assert worker.terminate() == 0
    evaluations = place.read(place.names.evaluations)
    curve = {evaluation["labels"]: evaluation["accuracy"] for evaluation in evaluations}
    assert sorted(curve) == list(range(1, 3 * N + 1)), "each label was learned, and once"
    assert curve[3 * N] > curve[N], "the curve rises"
    given = place.read(place.names.labels)
    assert sorted(label["id"] for label in given) == sorted(f"i{n}" for n in range(3 * N))
    assert {label["annotator"] for label in given} == {"ann", "bob"}
    assert all(label["label"] == ("even", "odd")[int(label["id"][1:]) % 2] for label in given)
