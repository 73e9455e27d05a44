"""Budgets of the web application's pages: `python -m benchmarks.web --pages --json`.

Annotators answer at the same time. An operator requests every page in turn: the server's time ends with the
last byte of the HTML, whose bytes are counted. A browser opens the label page with an empty cache and again
with a filled one: the first card is visible when its heading is. At the end a browser signs in, opens the
label page and answers, and the time ends when the label is on its topic.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
from confluent_kafka import Consumer, Producer

from benchmarks.web import CLASSES, PASSWORD, WAIT_S, Asking, clicks, people, process
from streamapp.embedded import EmbeddedBroker
from streamapp.web.layout.navigation import listed_pages
from streamapp.web.users import OPERATOR, add_user
from topics.clients import admin
from topics.clients.partitioner import partition_of
from topics.codecs import encode_evaluations, encode_model_events
from topics.columns.records import EvaluationRecord, ModelEvent
from topics.definitions import TopicNames

PARTITIONS: Final = 4
CARD_GOAL_S: Final = 1.5
PAGE_GOAL_MS: Final = 300.0
POINTS: Final = 20
OPENINGS: Final = 5
CHROMIUM: Final = "/usr/bin/chromium"
STARTED: Final = "operator"


def send_models(servers: str, names: TopicNames, models: int) -> None:
    """Send evaluations of models, and a drift of every tenth, so that lists and charts have content."""
    producer, now = Producer({"bootstrap.servers": servers}), int(time.time() * 1000)
    for number in range(models):
        key = b"model-%d" % number
        partition = partition_of(key, PARTITIONS)
        points = [
            EvaluationRecord(
                *(200 * step, 20 * step, 0.9 - 0.4 / step, 0.9 - 0.3 / step, 0.5, 0.5, 0.5, 0.5, 0.1),
                version=20 * step,
                accuracy_unbiased=0.9 - 0.4 / step,
                accuracy_unbiased_low=0.87 - 0.4 / step,
                accuracy_unbiased_high=0.93 - 0.4 / step,
                classes=dict.fromkeys(CLASSES, 10 * step),
            )
            for step in range(1, POINTS + 1)
        ]
        for value in encode_evaluations(points):
            producer.produce(names.evaluations, value, key, partition)
        detail = {"detector": "ddm", "level": "drift", "error_rate": 0.3, "action": "none"}
        kinds: list[Any] = [("created", {"learner": "h-tree"})] + [("drift", detail)] * (number % 10 == 0)
        events = [
            ModelEvent(kind, names.labels, at, now, 0, 0, None, dict(more))
            for at, (kind, more) in enumerate(kinds)
        ]
        for value in encode_model_events(events):
            producer.produce(names.model_events, value, key, partition)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def figures(values: list[float]) -> dict[str, float]:
    """Return median and 99th percentile."""
    median, most = np.percentile(np.array(values), [50, 99])
    return {"median": round(float(median), 1), "p99": round(float(most), 1)}


@asynccontextmanager
async def signed_in(address: str, name: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client that has signed in."""
    async with httpx.AsyncClient(base_url=address, timeout=WAIT_S) as client:
        form = {"name": name, "password": PASSWORD}
        answer = await client.post("/sign-in", data=form, headers={"origin": address.rstrip("/")})
        assert answer.status_code == 303, answer.text
        yield client


async def server_times(address: str, rounds: int) -> dict[str, dict[str, Any]]:
    """Return ms and bytes of each page that an operator sees."""
    ways = [page.address for page in listed_pages(OPERATOR)]
    ways += ["/model?key=model-0", "/compare?first=model-0&second=model-1", "/words"]
    times: dict[str, list[float]] = {way: [] for way in ways}
    sizes: dict[str, int] = {}
    async with signed_in(address, STARTED) as client:
        for _ in range(rounds):
            for way in ways:
                begun = time.perf_counter()
                answer = await client.get(way)
                times[way].append(1000 * (time.perf_counter() - begun))
                assert answer.status_code == 200, f"{way}: {answer.status_code}"
                sizes[way] = len(answer.content)
    return {way: {"server_ms": figures(times[way]), "html_bytes": sizes[way]} for way in ways}


async def opened(address: str, servers: str, names: TopicNames) -> dict[str, Any]:
    """Return the seconds to the first card, and to the first label, in a browser."""
    from playwright.async_api import async_playwright

    seconds: dict[str, list[float]] = {"empty_cache": [], "filled_cache": []}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for _ in range(OPENINGS):
            context = await browser.new_context()
            page = await context.new_page()
            await page.request.post(
                f"{address}sign-in",
                form={"name": STARTED, "password": PASSWORD},
                headers={"origin": address.rstrip("/")},
            )
            sizes: list[int] = []
            page.on("response", lambda response, sizes=sizes: sizes.append(_length(response)))
            for cache in seconds:
                begun = time.perf_counter()
                await page.goto(f"{address}label")
                await page.get_by_role("heading", name="which class has").wait_for(timeout=1000 * WAIT_S)
                seconds[cache].append(time.perf_counter() - begun)
                if cache == "empty_cache":
                    n_bytes = sum(sizes)
            await context.close()
        first_label = await _first_label(browser, address, servers, names)
        await browser.close()
    return {
        "first_card_s": {cache: figures(values) for cache, values in seconds.items()},
        "first_visit_bytes": n_bytes,
        "first_label_s": round(first_label, 2),
    }


def _length(response: Any) -> int:
    """Return the bytes of a response by its header, which uvicorn sets for files and pages."""
    return int(response.headers.get("content-length", 0))


async def _first_label(browser: Any, address: str, servers: str, names: TopicNames) -> float:
    """Return the seconds from opening the sign-in page to a label of this person on its topic."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "first-label", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([names.labels])
    page = await (await browser.new_context()).new_page()
    begun = time.perf_counter()
    await page.goto(address)
    await page.get_by_label("Name").fill(STARTED)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("link", name="Label the next card").click()
    await page.get_by_role("heading", name="which class has").wait_for(timeout=1000 * WAIT_S)
    await page.get_by_role("group", name="Classes").get_by_role("button").first.click()
    try:
        while time.perf_counter() - begun < WAIT_S:
            message = await asyncio.to_thread(consumer.poll, 1.0)
            if message is not None and f'"{STARTED}"'.encode() in (message.value() or b""):
                return time.perf_counter() - begun
    finally:
        consumer.close()
    return math.nan


async def measured(
    options: argparse.Namespace, address: str, servers: str, names: TopicNames
) -> dict[str, Any]:
    """Let annotators answer, and measure pages at the same time."""
    label = rf"^({'|'.join(CLASSES)}) \("
    n = options.annotators
    async with people(address, "label", n, "which class has", label, users=True) as annotators:
        answering = asyncio.create_task(clicks(annotators, options.seconds, options.think))
        pages = await server_times(address, options.rounds)
        in_browser = await opened(address, servers, names)
        n_answers = len(await answering)
    worst = max(page["server_ms"]["p99"] for page in pages.values())
    return {
        "annotators": n,
        "answers": n_answers,
        "models": options.models,
        "pages": pages,
        **in_browser,
        "goals": {
            "pages_within_300_ms": worst <= PAGE_GOAL_MS,
            "first_card_within_1.5_s": in_browser["first_card_s"]["empty_cache"]["median"] <= CARD_GOAL_S,
            "first_label_within_60_s": in_browser["first_label_s"] <= 60,
        },
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Start everything, measure, stop everything."""
    with tempfile.TemporaryDirectory() as directory, EmbeddedBroker() as broker:
        servers, names = broker.bootstrap_servers, TopicNames("web-pages.")
        admin.create({"bootstrap.servers": servers}, names, PARTITIONS)
        users = Path(directory) / "users.txt"
        for number in range(options.annotators):
            add_user(users, f"user{number}", PASSWORD)
        add_user(users, STARTED, PASSWORD, OPERATOR)
        send_models(servers, names, min(options.models, 1000))
        command = [sys.executable, "-m", "streamapp", "web", "--port", "0", "--users", str(users)]
        command += ["--state", str(Path(directory) / "web.sqlite"), "-b", servers]
        command += ["--topics-prefix", names.prefix, "--set", f"state.dir={directory}"]
        with process(command) as (address, _):
            asking = Asking(servers, names, options.rate, options.models)
            asking.start()
            try:
                return asyncio.run(measured(options, address, servers, names))
            finally:
                asking.stop()
