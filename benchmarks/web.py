"""Waiting time of annotators for the next card, beside a bare page, under load.

    python -m benchmarks.web --json
    python -m benchmarks.web --annotators 10 --rate 200 --models 100 --seconds 10
    python -m benchmarks.web --pages --annotators 100 --rate 200 --models 1000 --json

Models request labels at a steady rate, over many model keys (Zipf 1.1), and `grove web` reads the requests.
Annotators, which are websocket clients of NiceGUI's protocol and no browsers, sign in; each answers its card
by a click, waits for the next card, pauses, and answers that. In turns with it, the same number of clients
click the only button of a bare NiceGUI page, in a separate process, under the same load. Figures are times
from the click to the message with the next card (the next number), and the resident memory of the application
after each turn.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
import numpy as np
import socketio
from confluent_kafka import Producer

from streamapp.embedded import EmbeddedBroker
from streamapp.web.users import add_user
from topics.clients import admin
from topics.clients.partitioner import partition_of
from topics.codecs import encode_label_requests
from topics.columns.records import Features, LabelRequests
from topics.definitions import TopicNames

PARTITIONS: Final = 4
ATTRIBUTES: Final = 10
PASSWORD: Final = "correct horse battery"  # noqa: S105 - of users that live as long as the run
WAIT_S: Final = 60.0
ACK_EVERY: Final = 20
CLASSES: Final = ("fraud", "good")
BARE: Final = """
import sys, uvicorn
from fastapi import FastAPI
from nicegui import ui
def page():
    state = {"n": 0}
    label = ui.label("number 0")
    def click():
        state["n"] += 1
        label.set_text(f"number {state['n']}")
    ui.button("next", on_click=click)
ui.page("/")(page)
app = FastAPI()
ui.run_with(app, tailwind=False, show_welcome_message=False)
class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}/", flush=True)
Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning")).run()
"""


class Annotator:
    """One page and its websocket: a browser's state of the elements, without drawing them."""

    def __init__(self, address: str, page: str, heading: str, button: str) -> None:
        """`heading` is the pattern of the text that a click changes; `button` the pattern of the clicked
        element.
        """
        self._page = page
        self._address, self._heading, self._button = address, re.compile(heading), re.compile(button)
        self._elements: dict[int, dict[str, Any]] = {}
        self._socket = socketio.AsyncClient()
        self._changed = asyncio.Event()
        self._shown = ""
        self._messages = 0
        self._query: dict[str, Any] = {}

    async def begin(self, client: httpx.AsyncClient) -> None:
        """Load the page and open the websocket."""
        page = (await client.get(self._address + self._page)).raise_for_status().text
        elements = re.search(r"parseElements\(String\.raw`(.*?)`\)", page, re.S)
        query = re.search(r"query: (\{.*?\}),\n", page)
        assert elements and query, page[:200]
        text = elements[1]
        for escape, plain in (("&#36;", "$"), ("&#96;", "`"), ("&gt;", ">"), ("&lt;", "<"), ("&amp;", "&")):
            text = text.replace(escape, plain)
        self._take(json.loads(text))
        self._query = ast.literal_eval(query[1]) | {
            "document_id": str(uuid.uuid4()),
            "tab_id": str(uuid.uuid4()),
        }
        self._socket.on("update", self._update)
        words = "&".join(f"{name}={quote(str(value))}" for name, value in self._query.items())
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        await self._socket.connect(
            f"{self._address}?{words}",
            headers={"origin": self._address.rstrip("/"), "cookie": cookie},
            transports=["websocket"],
            socketio_path="_nicegui_ws/socket.io",
        )
        if str(self._query.get("implicit_handshake")) != "true":
            assert await self._socket.call("handshake", self._query)

    async def _update(self, data: dict[str, Any]) -> None:
        self._messages += 1
        self._take(data)
        if self._messages % ACK_EVERY == 0:
            acknowledged = {"client_id": self._query["client_id"], "next_message_id": self._messages}
            await self._socket.emit("ack", acknowledged)

    def _take(self, elements: dict[str, Any]) -> None:
        for number, element in elements.items():
            if element is None:
                self._elements.pop(int(number), None)
            elif isinstance(element, dict):
                self._elements[int(number)] = element
                text = str(element.get("text", ""))
                if self._heading.search(text) and text != self._shown:
                    self._shown = text
        self._changed.set()

    async def ready(self) -> None:
        """Wait until the button is there."""
        async with asyncio.timeout(WAIT_S):
            while not self._shown or self._listener() is None:
                self._changed.clear()
                await self._changed.wait()

    def _listener(self) -> tuple[int, str] | None:
        for number, element in self._elements.items():
            label = str(element.get("text", "")) or str(element.get("props", {}).get("label", ""))
            if self._button.search(label):
                for event in element.get("events", []):
                    if event["type"] == "click":
                        return number, event["listener_id"]
        return None

    async def click(self) -> float:
        """Click, and return the seconds until the text has changed."""
        listener = self._listener()
        assert listener is not None
        before, begun = self._shown, time.perf_counter()
        await self._socket.emit(
            "event",
            {
                "id": listener[0],
                "client_id": self._query["client_id"],
                "listener_id": listener[1],
                "args": ["{}"],
            },
        )
        async with asyncio.timeout(WAIT_S):
            while self._shown == before:
                self._changed.clear()
                await self._changed.wait()
        return time.perf_counter() - begun

    async def end(self) -> None:
        """Close the websocket."""
        await self._socket.disconnect()


@asynccontextmanager
async def people(
    address: str, page: str, n: int, heading: str, button: str, *, users: bool
) -> AsyncIterator[list[Annotator]]:
    """Yield annotators that have their first card; page: its path after the address."""
    annotators = []
    for number in range(n):
        async with httpx.AsyncClient(base_url=address, timeout=WAIT_S) as client:
            if users:
                form = {"name": f"user{number}", "password": PASSWORD}
                answer = await client.post("/sign-in", data=form, headers={"origin": address.rstrip("/")})
                assert answer.status_code == 303, answer.text
            annotator = Annotator(address, page, heading, button)
            await annotator.begin(client)
            annotators.append(annotator)
    for annotator in annotators:
        await annotator.ready()
    try:
        yield annotators
    finally:
        for annotator in annotators:
            await annotator.end()


async def clicks(annotators: list[Annotator], seconds: float, think_s: float) -> list[float]:
    """Let all annotators answer for this long; return the time of each answer, in seconds."""
    until = time.perf_counter() + seconds
    seconds_of_answers: list[float] = []

    async def one(number: int, annotator: Annotator) -> None:
        await asyncio.sleep(think_s * number / len(annotators))  # people do not click in step
        while time.perf_counter() < until:
            seconds_of_answers.append(await annotator.click())
            await asyncio.sleep(think_s)

    await asyncio.gather(*(one(number, annotator) for number, annotator in enumerate(annotators)))
    return seconds_of_answers


class Asking(threading.Thread):
    """Models that request labels at a steady rate until stopped."""

    def __init__(self, servers: str, names: TopicNames, rate: int, models: int) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
        self._names, self._rate, self._models = names, rate, models
        self._done = threading.Event()
        self.sent = 0

    def run(self) -> None:
        draws = np.random.default_rng(1)
        step = max(1, self._rate // 20)
        begun = time.perf_counter()
        while not self._done.wait(max(0.0, begun + self.sent / self._rate - time.perf_counter())):
            self.ask(step, draws)

    def ask(self, n: int, draws: np.random.Generator) -> None:
        """Send n requests."""
        ids = [f"i{self.sent + row}" for row in range(n)]
        features = Features.of(
            [f"feature {column}" for column in range(ATTRIBUTES)], draws.random((n, ATTRIBUTES))
        )
        answers = [CLASSES[row % 2] for row in range(n)]
        never = np.full(n, -1, dtype=np.int64)
        requests = LabelRequests(ids, ids, [features], answers, ["random"] * n, draws.random(n), never)
        keys = np.minimum(draws.zipf(1.1, n), self._models)
        for value, key in zip(encode_label_requests(requests), keys.tolist(), strict=True):
            name = b"model-%d" % key
            self._producer.produce(self._names.label_requests, value, name, partition_of(name, PARTITIONS))
        self._producer.poll(0)
        self.sent += n

    def stop(self) -> None:
        self._done.set()
        self.join()
        self._producer.flush(WAIT_S)


@contextmanager
def process(command: list[str]) -> Iterator[tuple[str, int]]:
    """Run a server in a separate process; yield its address and its process id."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as running:
        assert running.stdout is not None
        try:
            line = running.stdout.readline()
            address = re.search(r"http://\S+", line)
            assert address, f"{line!r}, {running.poll()}"
            yield address[0], running.pid
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(WAIT_S)


def status(pid: int, name: str) -> float:
    """Return a figure of a process from the kernel, in MB (VmHWM: its peak memory)."""
    match = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    assert match
    return int(match[1]) / 1024


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def summary(seconds_of_answers: list[float]) -> dict[str, float]:
    """Return the number of answers and percentiles of their times, in ms."""
    at = np.percentile(np.array(seconds_of_answers) * 1000, [50, 95, 99])
    return {"answers": len(seconds_of_answers)} | {
        f"p{p}_ms": round(float(ms), 2) for p, ms in zip((50, 95, 99), at, strict=True)
    }


async def measured(
    options: argparse.Namespace, web: tuple[str, int], bare: str, asking: Asking
) -> dict[str, Any]:
    """Let annotators answer on both pages, in turns; return the figures."""
    address, pid = web
    seconds_of_page: dict[str, list[float]] = {"web": [], "bare": []}
    label = rf"^({'|'.join(CLASSES)}) \("
    memory = []
    async with (
        people(address, "label", options.annotators, "which class has", label, users=True) as annotators,
        people(bare, "", options.annotators, "^number", "^next$", users=False) as clickers,
    ):
        begun, cpu = time.perf_counter(), cpu_seconds(pid)
        for _ in range(options.turns):
            for name, group in (("bare", clickers), ("web", annotators)):
                seconds_of_page[name] += await clicks(group, options.seconds / options.turns, options.think)
            memory.append(round(status(pid, "VmRSS"), 1))
        wall, spent = time.perf_counter() - begun, cpu_seconds(pid) - cpu
    summaries = {name: summary(times) for name, times in seconds_of_page.items()}
    return {
        "requests_per_s": options.rate,
        "annotators": options.annotators,
        "models": options.models,
        **summaries,
        "p95_ratio": round(summaries["web"]["p95_ms"] / summaries["bare"]["p95_ms"], 2),
        "web_cpu_share": round(spent / wall, 3),
        "web_memory_mb": memory,
        "web_memory_most_mb": round(status(pid, "VmHWM"), 1),
        "requests_sent": asking.sent,
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Start everything, measure, stop everything."""
    with tempfile.TemporaryDirectory() as directory, EmbeddedBroker() as broker:
        servers, names = broker.bootstrap_servers, TopicNames("web-benchmark.")
        admin.create({"bootstrap.servers": servers}, names, PARTITIONS)
        users = Path(directory) / "users.txt"
        for number in range(options.annotators):
            add_user(users, f"user{number}", PASSWORD)
        command = [sys.executable, "-m", "streamapp", "web", "--port", "0", "--users", str(users)]
        command += ["--state", str(Path(directory) / "web.sqlite"), "-b", servers]
        command += ["--topics-prefix", names.prefix]
        with process(command) as web, process([sys.executable, "-c", BARE]) as (bare, _):
            asking = Asking(servers, names, options.rate, options.models)
            asking.start()
            try:
                return asyncio.run(measured(options, web, bare, asking))
            finally:
                asking.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--rate", type=int, default=1000, help="requests a second")
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="of answering, on each page")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--think", type=float, default=1.0, help="seconds between a card and its answer")
    parser.add_argument("--pages", action="store_true", help="measure every page instead (web_pages.py)")
    parser.add_argument("--rounds", type=int, default=30, help="requests of each page")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.pages:
        from benchmarks import web_pages

        figures = web_pages.run(options)
    else:
        figures = run(options)
    if options.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:20} {figure}")


if __name__ == "__main__":
    main()
