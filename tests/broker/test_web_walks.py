"""Two people walk through the pages as new users: an annotator to a first label, an operator to a cause.

One worker, one broker and one browser serve both, and then every page is looked over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson
import pytest

from streamapp.web.layout.navigation import listed_pages
from streamapp.web.users import OPERATOR, add_user
from tests.broker.web_look import look_over
from tests.broker.web_rig import browser, grove_web
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker
from tests.web_pictures import SIZES
from topics.clients.partitioner import partition_of

pytestmark = pytest.mark.broker

PASSWORD = "correct horse battery"
KEY, OTHER = "shop-17", "shop-4"
SPEC = {
    "learner": {"name": "h-tree", "grace_period": 50, "delta": 0.01, "tau": 0.1},
    "query": "random",
    "budget": {"name": "count", "limit": 0.5},
    "drift": "ddm",
    "evaluation": {"every": 50, "share": 0.2},
    "explain": True,
}
TURN = 900
"""The concept turns round at this record."""
FIRST_LABEL_CLICKS = 3
CAUSE_CLICKS = 7


class Walk:
    """A person with a page: every click and every key that is no letter of a text counts."""

    def __init__(self, chromium: Any, address: str, name: str, size: dict[str, int], **context: Any) -> None:
        self.page = chromium.new_context(viewport=size, **context).new_page()
        self.address, self.clicks = address, 0
        self.sent: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.sent.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._listen)
        self.page.goto(address)
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.click(self.page.get_by_role("button", name="Sign in"))

    def _listen(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def click(self, place: Any) -> None:
        place.click()
        self.clicks += 1

    def foreign(self) -> list[str]:
        """Return the addresses on other hosts that the pages asked."""
        own = (self.address, self.address.replace("http", "ws", 1), "data:", "blob:")
        return [url for url in self.sent if not url.startswith(own)]


def send(place: Installation, key: str, rows: range, *, labelled: bool = True) -> None:
    """Send payments; which of them are fraud turns round at row TURN."""
    amounts = np.random.default_rng(7).uniform(1, 980, (3000, 2)).round(2).tolist()
    producer, code = place.producer(), key.encode()
    for row in rows:
        amount, age = amounts[row]
        body: dict[str, Any] = {
            "id": f"order-{row}",
            "features": {"amount": amount, "age of the account": age, "country": "DE" if row % 3 else "FR"},
        }
        if labelled:
            body["label"] = "fraud" if ((amount > 600) ^ (row >= TURN)) and age > 100 else "good"
        producer.produce(
            place.names.instances, orjson.dumps(body), code, partition_of(code, place.partitions)
        )
    assert producer.flush(PATIENCE) == 0


def give_a_first_label(walk: Walk, place: Installation) -> None:
    """Walk from the sign-in page to a label on its topic."""
    from playwright.sync_api import expect

    page = walk.page
    expect(page.get_by_text("an answer").first).to_be_visible()
    walk.click(page.get_by_role("link", name="Label the next card"))
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("which class has")
    instance = re.findall(r"which class has (.+)\?", heading.inner_text())[0]
    page.wait_for_timeout(300)  # a click before the card can have been read is not taken
    walk.click(page.get_by_role("group", name="Classes").get_by_role("button").first)
    expect(page.get_by_text(f"{instance}: ")).to_be_visible()

    def given() -> list[str]:
        return [label["id"] for label in place.read(place.names.labels) if label.get("annotator") == "ann"]

    wait_until(lambda: given() == [instance], PATIENCE, lambda: f"labels of ann: {given()}")
    assert walk.clicks <= FIRST_LABEL_CLICKS
    page.get_by_role("link", name="Start").click()
    expect(page.get_by_text("Today (UTC): 1 label")).to_be_visible()
    assert page.get_by_role("link", name="Partitions").count() == 0, "it is for operators"


def find_why_accuracy_fell(walk: Walk) -> None:
    """Walk from the start page to the drift of a model, its record, and the dead letter."""
    from playwright.sync_api import expect

    page = walk.page
    walk.click(page.get_by_role("link", name=re.compile(f"^{KEY}: drift alarm")))
    expect(page.get_by_role("heading", level=1)).to_contain_text(KEY)
    walk.click(page.get_by_role("link", name="All drifts"))
    expect(page.get_by_text("ddm: drift at error rate").first).to_be_visible()
    walk.click(page.get_by_role("link", name=re.compile("^order-")).first)
    expect(page).to_have_url(re.compile("tab=explanation"))
    walk.click(page.get_by_role("link", name="Start"))
    walk.click(page.get_by_role("link", name=re.compile("^1 dead letter")))
    expect(page.get_by_role("cell", name="not-json").first).to_be_visible()
    walk.click(page.get_by_role("button", name=re.compile("^Show \\d")))
    expect(page.get_by_text("{broken").first).to_be_visible()
    assert walk.clicks <= CAUSE_CLICKS


def sort_and_filter(page: Any, address: str) -> None:
    """Sort a table by keyboard, and filter another."""
    from playwright.sync_api import expect

    page.goto(f"{address}models")
    rows = page.get_by_role("table").get_by_role("row")
    head = page.get_by_role("columnheader", name="Records")
    for direction, first in (("ascending", OTHER), ("descending", KEY)):
        head.get_by_role("button", name="Records").focus()
        page.keyboard.press("Enter")
        expect(head).to_have_attribute("aria-sort", direction)
        expect(rows.nth(1)).to_contain_text(first)
    page.get_by_label("Part of a model's name").fill("SHOP-4")
    expect(page.get_by_text("1–1 of 1")).to_be_visible()
    expect(rows.nth(1)).to_contain_text(OTHER)


def read_a_hint(page: Any, address: str) -> None:
    """Open a hint, and go on to the list of all words."""
    from playwright.sync_api import expect

    page.goto(f"{address}partitions")
    page.get_by_role("button", name="Meaning of Partition").first.click()
    expect(page.get_by_text("All records of one model are in the same partition").first).to_be_visible()
    page.get_by_role("link", name="All words").locator("visible=true").click()
    expect(page).to_have_url(re.compile(r"/words#partition$"))


def choose_colours(page: Any, address: str) -> None:
    """Choose dark; the next page of the browser is dark from its first picture on."""
    from playwright.sync_api import expect

    background = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(background)
    page.get_by_role("button", name="Dark colours").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto(f"{address}models")
    expect(page.get_by_role("button", name="Dark colours")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("body.body--dark")).to_have_count(1)
    assert page.evaluate(background) != before
    page.get_by_role("button", name="Colours of the system").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "system")


def test_new_people_find_their_way_and_every_page_is_in_order(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "walks.", 2, tmp_path, module="streamapp worker")
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    users, store = tmp_path / "users.txt", tmp_path / "web.sqlite"
    add_user(users, "ann", PASSWORD)
    add_user(users, "bob", PASSWORD, OPERATOR)
    options = ["--users", str(users), "--undo-seconds", "0", "--set", f"application.id={place.group}"]
    options += ["--set", f"state.dir={tmp_path / 'web'}"]
    send(place, KEY, range(2 * TURN))
    send(place, OTHER, range(TURN))
    producer, code = place.producer(), KEY.encode()
    producer.produce(place.names.instances, b"{broken", code, partition_of(code, place.partitions))
    assert producer.flush(PATIENCE) == 0
    with (
        browser() as chromium,
        place.worker("w", GROVE_MODEL_SPEC=orjson.dumps(SPEC).decode()) as worker,
        grove_web(kafka, place.names, store, *options) as address,
    ):
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        send(place, KEY, range(2 * TURN, 2 * TURN + 30), labelled=False)
        place.wait_for_lag_0(alive=[worker])
        ann = Walk(chromium, address, "ann", SIZES["-phone"])
        give_a_first_label(ann, place)
        bob = Walk(chromium, address, "bob", SIZES[""])
        find_why_accuracy_fell(bob)
        sort_and_filter(bob.page, address)
        read_a_hint(bob.page, address)
        choose_colours(bob.page, address)
        walks = [ann, bob]
        # Two of the four pairs of size and colours have all of both.
        pairs = [("", "light"), ("-phone", "dark")]
        problems: list[Any] = []
        for size, scheme in pairs:
            walk = Walk(chromium, address, "bob", SIZES[size], color_scheme=scheme)
            walks.append(walk)
            for name, way, ready in pages():
                walk.page.goto(address + way)
                ready(walk.page)
                problems += look_over(walk.page, f"{name}{size}{'-dark' if scheme == 'dark' else ''}")
        assert problems == []
        assert [walk.foreign() for walk in walks] == [[]] * len(walks)
        assert [walk.complaints for walk in walks] == [[]] * len(walks)


def pages() -> list[tuple[str, str, Callable[[Any], None]]]:
    """Return name and path of each page, with a wait for its content."""
    from playwright.sync_api import expect

    def shows(text: str) -> Callable[[Any], None]:
        return lambda page: expect(page.get_by_text(text).locator("visible=true").first).to_be_visible()

    texts = {
        "/": "records were not processed.",
        "/label": "which class has",
        "/models": "1–2 of 2",
        "/partitions": "records wait in all.",
        "/dead-letters": "not-json",
        "/experiments": "There is no result",
    }
    listed = [
        (page.address[1:] or "start", page.address[1:], shows(texts.get(page.address, page.name)))
        for page in listed_pages(OPERATOR)
    ]
    return [
        *listed,
        ("words", "words", shows("Dead letter")),
        ("model", f"model?key={quote(KEY)}", shows(KEY)),
        ("compare", f"compare?first={KEY}&second={OTHER}", shows(KEY)),
    ]
