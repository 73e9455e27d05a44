"""The pages on models in a real browser, with a worker and a broker behind them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from tests.broker.kafka_log import read_topic
from tests.broker.web_look import look_over
from tests.broker.web_rig import CHROMIUM, grove_web
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker
from topics.clients.partitioner import partition_of

pytestmark = pytest.mark.broker

PARTITIONS = 2
KEY, OTHER = "shop <1>", "plain"
LEARNER = {"name": "h-tree", "grace_period": 50, "delta": 0.01, "tau": 0.1}
SPEC = {
    "learner": LEARNER,
    "query": "random",
    "budget": {"name": "count", "limit": 0.5},
    "drift": "ddm",
    "evaluation": {"every": 50, "share": 0.2},
}
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 360, "height": 740}}


def send(place: Installation, key: str, rows: range) -> None:
    """Labelled instances whose concept turns round at row 1,500."""
    x = np.random.default_rng(7).uniform(0, 100, (5000, 2)).round(1).tolist()
    producer, code = place.producer(), key.encode()
    for i in rows:
        amount, age = x[i]
        body = {
            "id": f"i{i}",
            "features": {"amount": amount, "age": age, "country": "DE" if i % 3 else "<b>FR</b>"},
            "label": "fraud" if ((amount > 60) ^ (i >= 1500)) and age > 20 else "good",
        }
        producer.produce(place.names.instances, orjson.dumps(body), code, partition_of(code, PARTITIONS))
    producer.produce(place.names.instances, b"{broken", code, partition_of(code, PARTITIONS))
    assert producer.flush(PATIENCE) == 0


def stuck(place: Installation) -> str:
    """A record that no worker has come to, as PARTITION:OFFSET."""
    producer, code = place.producer(), KEY.encode()
    value = orjson.dumps({"id": "stuck", "features": {"amount": 1.0}})
    producer.produce(place.names.instances, value, code, partition_of(code, PARTITIONS))
    assert producer.flush(PATIENCE) == 0
    (sent,) = [message for message in place.raw(place.names.instances) if message.value() == value]
    return f"{sent.partition()}:{sent.offset()}"


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Iterator[Installation]:
    yield Installation(broker.bootstrap_servers, "watch.", PARTITIONS, tmp_path, module="streamapp worker")


def look_at(page: Any, name: str, size: str) -> None:
    assert look_over(page, f"{name}-{size}") == []


def events(place: Installation) -> list[tuple[bytes, dict[str, Any]]]:
    messages = read_topic({"bootstrap.servers": place.servers}, place.names.model_events)
    return [(message.key(), orjson.loads(message.value())) for message in messages]


@pytest.mark.nightly
def test_models_are_watched_while_a_worker_dies(place: Installation, tmp_path: Path) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here")
    from playwright.sync_api import expect, sync_playwright

    patience = PATIENCE * 1000
    kafka = {"bootstrap.servers": place.servers}
    options = ("--set", f"application.id={place.group}", "--set", f"state.dir={tmp_path / 'web'}")
    send(place, KEY, range(1200))
    send(place, OTHER, range(600))
    spec = orjson.dumps(SPEC).decode()
    with (
        place.worker("w", GROVE_MODEL_SPEC=spec) as worker,
        grove_web(kafka, place.names, tmp_path / "web.sqlite", *options) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZES["desktop"])
        complaints: list[str] = []
        page.on(
            "console",
            lambda console_message: (
                complaints.append(console_message.text) if console_message.type == "error" else None
            ),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{address}models")
        expect(page.get_by_role("cell", name=KEY)).to_be_visible(timeout=patience)
        expect(page.get_by_role("cell", name=OTHER)).to_be_visible(timeout=patience)
        look_at(page, "models", "desktop")
        page.get_by_label("Part of a model's name").fill("SHOP")
        expect(page.get_by_text("1–1 of 1")).to_be_visible(timeout=patience)
        page.get_by_role("link", name=KEY).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(KEY, timeout=patience)

        # The page goes on by itself while the worker dies and comes again.
        place.wait_for_lag_0(alive=[worker])
        for path in ("/", "/router/", "/table/", "/graph/", "/stats/"):
            assert worker.page(path)[0] == 404, f"Faust's own page {path} is off"
        look_at(page, "model", "desktop")
        page.get_by_role("link", name="Events", exact=True).click()
        expect(page.get_by_text("created: learner h-tree")).to_be_visible(timeout=patience)
        before = len(events(place))
        worker.kill()
        send(place, KEY, range(1200, 2400))
        with place.worker("w", GROVE_MODEL_SPEC=spec) as again:
            again.wait_until_ready()
            place.wait_for_lag_0(alive=[again])
            expect(page.get_by_text("ddm: drift at error rate").first).to_be_visible(timeout=patience)
            events_seen = events(place)
            assert len(events_seen) > before > 2
            names = [
                (key, event["event"], event["offset"], event["detail"].get("node"))
                for key, event in events_seen
            ]
            assert len(names) == len(set(names)), "exactly once"

            look_at(page, "model-events", "desktop")
            at = f"{partition_of(KEY.encode(), PARTITIONS)}:5"
            page.goto(f"{address}model?key=shop+%3C1%3E&tab=tree&at={at}")
            expect(page.get_by_role("treeitem", name="all records")).to_be_visible(timeout=patience)
            expect(page.get_by_text("The path ends in node")).to_be_visible(timeout=patience)
            look_at(page, "model-tree", "desktop")
            record = '{"amount": 70, "age": 50, "country": "DE"}'
            page.get_by_label("A record: PARTITION:OFFSET").fill(record)
            page.get_by_role("button", name="Show its path").click()
            expect(page.get_by_text("The model answers good")).to_be_visible(timeout=patience)
            page.goto(f"{address}model?key=shop+%3C1%3E&tab=explanation&at={at}")
            expect(page.get_by_text("The answer that was sent is the same.")).to_be_visible(timeout=patience)
            look_at(page, "model-explanation", "desktop")
            page.goto(f"{address}model?key=shop+%3C1%3E&tab=labels")
            expect(page.get_by_text("allowed by the budget")).to_be_visible(timeout=patience)
            look_at(page, "model-labels", "desktop")
            page.goto(f"{address}model?key=shop+%3C1%3E&tab=spec")
            expect(page.get_by_text("query strategy")).to_be_visible(timeout=patience)
            look_at(page, "model-spec", "desktop")

            page.goto(f"{address}compare?first=shop+%3C1%3E&second=plain")
            expect(page.get_by_role("cell", name="accuracy", exact=True)).to_be_visible(timeout=patience)
            expect(page.get_by_role("cell", name="counts").first).to_be_visible(timeout=patience)
            look_at(page, "compare", "desktop")

            page.goto(f"{address}dead-letters")
            expect(page.get_by_role("cell", name="not-json").first).to_be_visible(timeout=patience)
            look_at(page, "dead-letters", "desktop")
            page.get_by_label("Model", exact=True).fill(OTHER)
            page.get_by_role("button", name="Send these again").click()
            page.get_by_role("button", name="Yes").click(timeout=patience)
            expect(page.get_by_text("Sent again: 1.")).to_be_visible(timeout=patience)
            place.wait_for_lag_0(alive=[again])
            assert len(read_topic(kafka, place.names.dead_letters)) == 4, "it is one again"

            page.goto(f"{address}partitions")
            expect(page.get_by_text("0 records wait in all")).to_be_visible(timeout=patience)
            look_at(page, "partitions", "desktop")

            page.set_viewport_size(SIZES["phone"])
            for name, way, shown in (
                ("models", "models", page.get_by_role("cell", name=KEY)),
                ("model", "model?key=shop+%3C1%3E", page.get_by_text("Estimated over all records")),
                ("model-tree", "model?key=shop+%3C1%3E&tab=tree", page.get_by_role("treeitem")),
                (
                    "compare",
                    "compare?first=shop+%3C1%3E&second=plain",
                    page.get_by_role("cell", name="counts"),
                ),
                ("dead-letters", "dead-letters", page.get_by_role("cell", name="not-json")),
                ("partitions", "partitions", page.get_by_text("0 records wait in all")),
            ):
                page.goto(f"{address}{way}")
                expect(shown.first).to_be_visible(timeout=patience)
                fits = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                assert fits, f"{name} fits a phone"
                look_at(page, name, "phone")
        assert complaints == []
        browser.close()


def test_a_record_is_skipped_on_the_page_while_no_worker_runs(place: Installation, tmp_path: Path) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here")
    from playwright.sync_api import expect, sync_playwright

    patience = PATIENCE * 1000
    kafka = {"bootstrap.servers": place.servers}
    options = ("--set", f"application.id={place.group}", "--set", f"state.dir={tmp_path / 'web'}")
    with (
        place.worker("w") as worker,
        grove_web(kafka, place.names, tmp_path / "web.sqlite", *options) as address,
        sync_playwright() as playwright,
    ):
        worker.wait_until_ready()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZES["desktop"])
        page.goto(f"{address}dead-letters")
        skips = page.get_by_role("button", name="Skip")
        page.get_by_label("PARTITION:OFFSET").fill("0:5")
        skips.click()
        expect(page.get_by_text("must have no members")).to_be_visible(timeout=patience)

        # What stops its partition becomes a dead letter, unprocessed, while no worker runs.
        worker.signal(signal.SIGUSR2)
        assert worker.wait() == 0, worker.log
        wait_until(lambda: not place.members(), PATIENCE, lambda: "somebody is in the group")
        at = stuck(place)
        page.get_by_label("PARTITION:OFFSET").fill(at)
        skips.click()
        expect(page.get_by_text(f"The record {place.names.instances} {at}")).to_be_visible(timeout=patience)
        page.get_by_role("button", name="Yes").click()
        expect(page.get_by_text("The record becomes a dead letter when a worker reads it")).to_be_visible(
            timeout=patience
        )
        worker.start()
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        (letter,) = read_topic(kafka, place.names.dead_letters)
        assert dict(letter.headers())["grove-dlq-reason"] == b"skipped"
        page.get_by_role("button", name="Show", exact=True).click()
        expect(page.get_by_role("cell", name="skipped", exact=True)).to_be_visible(timeout=patience)
        browser.close()


def test_results_of_experiments_are_shown(broker: Broker, tmp_path: Path) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here")
    from playwright.sync_api import expect, sync_playwright

    from streamapp.cli.main import main

    place = Installation(broker.bootstrap_servers, "results.", PARTITIONS, tmp_path)
    folder = tmp_path / "results"
    assert main(["experiment", "vfs-table1", "--quick", "--output", str(folder)]) == 0
    kafka = {"bootstrap.servers": place.servers}
    with (
        grove_web(kafka, place.names, tmp_path / "web.sqlite", "--experiments", str(folder)) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZES["desktop"])
        page.goto(f"{address}experiments")
        expect(page.get_by_text("attributes published")).to_be_visible(timeout=PATIENCE * 1000)
        expect(page.get_by_role("cell", name="SEA")).to_be_visible()
        look_at(page, "experiments", "desktop")
        browser.close()
