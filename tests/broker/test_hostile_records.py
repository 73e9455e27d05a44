"""Scripts in records and damaged imports, through a real worker: it goes on, and no page runs or draws them.

Everything that a page shows of records came through a worker here; tests/unit/streamapp/web/
test_hostile_pages.py walks the same pages without one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from streamapp.worker.task.models.files.importing import control_values
from tests.broker.kafka_log import read_topic
from tests.broker.web_rig import CHROMIUM, grove_web
from tests.broker.workers import PATIENCE, Installation
from tests.conftest import Broker
from tests.hostile_text import HOSTILE, START, hover_charts, look, text
from topics.clients.partitioner import partition_of

pytestmark = [pytest.mark.broker, pytest.mark.nightly]

PARTITIONS = 2
KEY, PLAIN = text("key"), "plain"
NUMBER, COLOUR = text("number"), text("colour")
HIGH, LOW = text("high"), text("low")
SPEC = {
    "learner": {"name": "h-tree", "grace_period": 50, "delta": 0.01, "tau": 0.1},
    "query": "random",
    "budget": {"name": "count", "limit": 0.9},
    "drift": "ddm",
    "explain": True,
    "evaluation": {"every": 50, "share": 0.2},
}
SCHEMA = {
    "attributes": [
        {"name": NUMBER},
        {"name": COLOUR, "kind": "nominal", "values": [text("red")], "open": True},
    ],
    "classes": [HIGH, LOW],
}
CLASS_BYTES = 512  # more than the names of classes have
FILE = (Path(__file__).parents[1] / "golden" / "exported-1-7.grove").read_bytes()


class Sender:
    """Sends records of a key to its partition of a topic."""

    def __init__(self, place: Installation) -> None:
        self._producer = place.producer()

    def __call__(self, topic: str, key: str, value: Any, headers: Any = None) -> None:
        code = key.encode()
        body = value if isinstance(value, bytes) else orjson.dumps(value)
        self._producer.produce(topic, body, code, partition_of(code, PARTITIONS), headers=headers)

    def flush(self) -> None:
        assert self._producer.flush(PATIENCE) == 0


def damaged_imports(count: int) -> Iterator[bytes]:
    """Controls that import a model file, each damaged in one place."""
    draw = random.Random(count)
    for n in range(count):
        value = bytearray(draw.choice(control_values(FILE, f"f{n}", size=1500)))
        value[draw.randrange(len(value))] ^= 1 << draw.randrange(8)
        yield bytes(value[: draw.randrange(1, len(value))] if n % 3 == 0 else value)


def send(place: Installation) -> None:
    """Hostile and damaged records, and plain ones after them."""
    names, give = place.names, Sender(place)
    give(names.controls, KEY, {"command": "create", "spec": SPEC, "schema": SCHEMA})
    for n in range(400):
        x = n * 37 % 100
        features = {NUMBER: x, COLOUR: text("red") if n % 2 else text(f"colour {n % 7}", 200)}
        body = {"id": text(f"instance {n}", 300), "features": features}
        give(names.instances, KEY, body | ({"label": HIGH if x > 50 else LOW} if n % 4 else {}))
    for n in range(60):
        give(
            names.labels,
            KEY,
            {"id": text(f"instance {n}", 300), "label": text("shut out"), "annotator": HOSTILE},
        )
    for broken in (
        HOSTILE.encode(),
        b"{",
        orjson.dumps({"id": HOSTILE}),
        orjson.dumps({"features": HOSTILE}),
    ):
        give(
            names.instances,
            KEY,
            broken,
            [(HOSTILE[:200], HOSTILE.encode()), ("content-type", HOSTILE.encode())],
        )
        give(names.instances, KEY, broken, [(HOSTILE[:200], HOSTILE.encode())])
        give(names.labels, KEY, broken)
    for control in (
        {"command": HOSTILE},
        {"command": "create", HOSTILE: HOSTILE},
        {"command": "create", "spec": HOSTILE},
    ):
        give(names.controls, KEY, control)
    for value in damaged_imports(150):
        give(names.controls, text("imported"), value)
    for value in control_values(FILE, "whole", size=1500, replace=True):
        give(names.controls, "whole", value)
    for n in range(300):
        give(names.instances, PLAIN, {"id": f"p{n}", "features": {"x": n % 9}, "label": str(n % 2)})
    give.flush()


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Iterator[Installation]:
    settings = {"GROVE_MAX_CLASS_NAME_BYTES": str(CLASS_BYTES)}
    yield Installation(
        broker.bootstrap_servers, "hostile.", PARTITIONS, tmp_path, settings, module="streamapp worker"
    )


@pytest.mark.timeout(3600)
def test_no_page_runs_or_draws_what_came_through_a_worker(place: Installation, tmp_path: Path) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here")
    from playwright.sync_api import expect, sync_playwright

    dialogs: list[str] = []
    sent: list[str] = []
    send(place)
    kafka = {"bootstrap.servers": place.servers}
    given = {
        "application.id": place.group,
        "state.dir": tmp_path / "web",
        "max.class.name.bytes": CLASS_BYTES,
    }
    options = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        answered = {
            orjson.loads(message.value())["id"] for message in read_topic(kafka, place.names.predictions)
        }
        assert {f"p{n}" for n in range(300)} <= answered, "plain records are answered after the hostile ones"
        imported = [
            message.key()
            for message in read_topic(kafka, place.names.model_events)
            if orjson.loads(message.value())["event"] == "imported"
        ]
        assert imported == [b"whole"], "no damaged file became a model"
        with (
            grove_web(
                kafka, place.names, tmp_path / "web.sqlite", "--show-guess", "--annotator", HOSTILE, *options
            ) as address,
            sync_playwright() as playwright,
        ):
            expect.set_options(timeout=PATIENCE * 1000)
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            page.on("request", lambda page_request: sent.append(page_request.url))
            page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
            page.on("pageerror", lambda error: dialogs.append(f"{page.url[:80]}: {error}"))

            def check(*shown: str) -> None:
                for text in shown:
                    expect(page.get_by_text(text).filter(visible=True).first).to_be_visible()
                hover_charts(page)
                dialogs.extend(look(page, address, sent))

            page.goto(address)
            check(f"key {START}", PLAIN)
            page.goto(f"{address}label")
            check(f"key {START}", f"number {START}", "The model answers", f"high {START}")
            page.get_by_label("Another class").fill(HOSTILE)
            page.get_by_role("button", name="Answer with it").click()
            check("must be one of")
            page.goto(f"{address}sure")
            check()
            page.goto(f"{address}models")
            check(f"key {START}", PLAIN)
            model, at = f"{address}model?key={quote(KEY)}", f"{partition_of(KEY.encode(), PARTITIONS)}:5"
            page.goto(model)
            check(f"key {START}", "all labels so far")
            page.goto(f"{model}&tab=events")
            check("split on")
            page.goto(f"{model}&tab=tree&at={at}")
            check("as it was", "all records", "The path ends in node")
            page.goto(f"{model}&tab=explanation&at={at}")
            check(f"instance 5 {START}")
            page.get_by_label("Place of the record").fill(HOSTILE)
            page.get_by_role("button", name="Explain").click()
            check("must be PARTITION:OFFSET")
            for tab, shown in (("labels", "Weight"), ("spec", "query strategy")):
                page.goto(f"{model}&tab={tab}")
                check(shown)
            page.goto(f"{address}compare?first={quote(KEY)}&second={PLAIN}")
            check(f"key {START}", "counts")
            page.goto(f"{address}dead-letters")
            check("in all", "bad-control")
            for row in range(3):
                page.get_by_role("button", name=re.compile(r"^Show \d")).nth(row).click()
                check("reason")
            page.get_by_label("Model", exact=True).fill(HOSTILE)
            page.get_by_role("button", name="Send these again").click()
            check("Nothing can be sent again")
            page.goto(f"{address}partitions")
            check("records wait in all")
            own = f"{worker.web}/"
            sent.clear()
            for way in (
                "metrics",
                "readyz?verbose",
                f"models/{quote(HOSTILE, safe='')}",
                quote(HOSTILE),
                "livez",
            ):
                page.goto(own + way)
                dialogs.extend(look(page, own, sent))
            browser.close()
    assert dialogs == []
