"""Pictures of every page of the web application, on a desk and on a phone.

`python -m tests.web_pictures FOLDER [dark]` makes those of docs/screenshots/ again. The pages are served
without a broker, with made requests, evaluations and events; the answers about an installation are made too.
Each picture has few colours, so that its file is small.
"""

from __future__ import annotations

import io
import math
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamapp.web.annotation_terms import Terms
from streamapp.web.application import WebPlan, _server
from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.guard import Entry
from streamapp.web.pages.surroundings import Surroundings
from streamapp.web.queue.cards import Attribute, Cell, Range, Request
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from streamapp.web.users import OPERATOR, Sessions, Users, add_user
from streamapp.web.watch.inspector import Found, InspectionError, Inspector
from streamapp.web.watch.watched import Evaluated, Said, Watched
from streamapp.web.watch.watching import Watching
from topics.columns.records import EvaluationRecord, ModelEvent
from topics.definitions import TopicNames

SIZES: Final = {"": {"width": 1300, "height": 900}, "-phone": {"width": 390, "height": 844}}
COLOURS: Final = 48
BYTES_MAX: Final = 60_000
CHROMIUM: Final = "/usr/bin/chromium"
PASSWORD: Final = "correct horse battery"
WAIT_S: Final = 300.0
DRAWN_MS: Final = 2000
"""Charts draw their lines for a second."""
MODELS: Final = 14
WAYS: Final = {
    "start": ("", "records were not processed."),
    "label": ("label", "which class has"),
    "sure": ("sure", "for all of these"),
    "models": ("models", f"1–{MODELS} of {MODELS}"),
    "model": ("model?key=shop-2", "shop-2"),
    "compare": ("compare?first=shop-3&second=shop-5", "Compare two models"),
    "dead-letters": ("dead-letters", "in all"),
    "partitions": ("partitions", "wait in all"),
    "experiments": ("experiments", "There is no result"),
    "words": ("words", "Dead letter"),
}
"""Name of a picture → path of the page, and a text of its content."""


class MadeInspector(Inspector):
    """Answers of an installation with four partitions and forty dead letters."""

    def look(self, ask: str, *, fresh_ms: int = 15_000, **arguments: Any) -> Found:
        """Return a made answer; InspectionError for questions that need models."""
        now = now_ms()
        if ask == "partitions":
            rows = [_partition(number) for number in range(4)]
            return Found(now, {"rows": rows, "members": ["worker-a", "worker-b"], "group": "grove"})
        if ask == "dead-letters":
            letters = [_letter(number, now) for number in range(40)]
            reasons = {"not-json": 14, "too-old": 13, "unknown-class": 13}
            return Found(now, {"reasons": reasons, "rows": letters})
        message = f"there is no broker for {ask} {sorted(arguments)} of {fresh_ms} ms"
        raise InspectionError(message)


def _partition(number: int) -> dict[str, Any]:
    return {
        "partition": number,
        "trouble": None,
        "behind": 120 * number,
        "lag": {"instances": 100 * number, "labels": 20 * number},
        "snapshot": None if number == 2 else {"models": 12, "bytes": 345_678},
        "incarnation": number + 1,
        "since_snapshot": 1234,
    }


def _letter(number: int, now: int) -> dict[str, Any]:
    return {
        "at": f"0:{number}",
        "reason": ("not-json", "too-old", "unknown-class")[number % 3],
        "key": f"shop-{number % 7}",
        "topic": "instances",
        "record": f"1:{number * 17}",
        "detail": "unexpected character at 1",
        "timestamp": now - number * 60_000,
    }


def fill_models(watched: Watched) -> None:
    """Give models evaluations of ten hours, and three of them a drift; one fell after it."""
    noise, now = np.random.default_rng(1), now_ms()
    evaluations, events = [], []
    for number in range(MODELS):
        key = f"shop-{number}"
        for step in range(1, 60):
            fall = 0.2 if number == 2 and step > 45 else 0.0
            accuracy = 0.6 + 0.35 * (1 - math.exp(-step / 12)) - fall + float(noise.normal(0, 0.01))
            half = 0.2 / math.sqrt(step)
            is_drawn = number % 2 == 1 or number == 2
            record = EvaluationRecord(
                *(step * 200, step * 25, accuracy, accuracy, 0.5, 0.5, 0.5, 0.5, 0.1),
                version=step * 25,
                accuracy_unbiased=accuracy if is_drawn else math.nan,
                accuracy_unbiased_low=max(accuracy - half, 0.0) if is_drawn else math.nan,
                accuracy_unbiased_high=min(accuracy + half, 1.0) if is_drawn else math.nan,
                classes={"fraud": step * 5, "good": step * 20},
            )
            evaluations.append(Evaluated(key, 0, now - (60 - step) * 600_000, record))
        begun = now - 86_400_000
        events.append(
            Said(key, 0, ModelEvent("created", "controls", 0, begun, 0, 0, None, {"learner": "h-tree"}))
        )
        if number in (2, 5, 11):
            detail = {"detector": "ddm", "level": "drift", "error_rate": 0.31, "action": "new tree"}
            moment = now - number * 3_600_000
            events.append(
                Said(key, 0, ModelEvent("drift", "instances", 17, moment, 1150, 9200, "order-9200", detail))
            )
    watched.apply(evaluations, events, {})


def fill_queue(queue: LabelQueue) -> None:
    """Let nine models request labels; one of them is sure of some."""
    now = now_ms()
    features: dict[str, Cell] = {
        "amount": 12.5,
        "country": "DE",
        "items": 3.0,
        "age of the account": 4231.0,
        "email": "ann@example.org",
    }
    first = Request(
        0,
        "shop-8",
        "r",
        "order-4711",
        now - 5_400_000,
        now + 28_800_000,
        0.77,
        "fraud",
        "uncertainty",
        features,
    )
    first = replace(
        first,
        rules="amount <= 40 and items > 2",
        shares={"fraud": 0.63, "good": 0.37},
        seen={
            "amount": Range(0.5, 980.0, 12_407),
            "items": Range(1.0, 12.0, 12_410),
            "age of the account": Range(0.0, 4000.0, 12_410),
        },
    )
    requests = [first]
    for number in range(8):
        until = now + (600_000 if number == 3 else 3_600_000 * (number + 2))
        requests += [
            replace(
                first,
                key=f"shop-{number}",
                request_id=f"r{number}-{at}",
                instance_id=f"order-{number}{at}",
                asked_ms=now - 540_000 * number - 90_000 * at,
                expires_ms=until,
                utility=0.3 + 0.05 * number,
            )
            for at in range(number + 1)
        ]
    requests += [
        replace(
            first,
            key="shop-0",
            request_id=f"s{at}",
            instance_id=f"order-9{at}",
            utility=at / 100,
            features=features | {"amount": 9.0 * at},
        )
        for at in range(5)
    ]
    classes = [(f"shop-{number}", name) for number in range(9) for name in ("fraud", "good", "unclear")]
    queue.topics.apply(requests, [], {}, now, classes)


def ask_for_features(queue: LabelQueue, name: str) -> None:
    """Let a model ask for two features of a loan, with a card that comes before all others."""
    now, key = now_ms(), "loans"
    wanted = Request(0, key, name, name, now - 90_000, -1, 9.0, None, "acquisition", {"amount": 12_500.0})
    wanted = replace(wanted, wanted=("income", "bureau"), cost=5.0)
    declared = [Attribute(key, "income"), Attribute(key, "bureau", "nominal", ("clean", "entries"))]
    queue.topics.apply([wanted], [], {}, now, attributes=declared)


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, LabelQueue]]:
    """Serve all pages without a broker; yield their address, and the queue."""
    store, watched, inspector = Store(":memory:"), Watched(":memory:"), MadeInspector({})
    watched.begin({"prefix": "made."})
    queue = LabelQueue(store, Terms(sure_utility=0.2))
    fill_models(watched)
    fill_queue(queue)
    path = folder / "users.txt"
    add_user(path, "ann", PASSWORD, OPERATOR)
    users, audit = Users(path), AuditLog(store)
    around = Surroundings(queue, lambda: queue.counts(now_ms()), lambda: "", True, True, {"amount": "EUR"})

    def noted(user: str, action: str, detail: str) -> None:
        audit.note(user, action, now_ms(), detail=detail)

    watching = Watching(watched, inspector, folder / "experiments", noted, True)
    listening, address = threading.Event(), list[str]()

    def started(where: str) -> None:
        address.append(where)
        listening.set()

    entry = Entry(Sessions(store), users, "web", True, audit)
    server = _server(WebPlan(folder, TopicNames(), port=0, users=path), around, entry, started, watching)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert listening.wait(WAIT_S)
        yield address[0], queue
    finally:
        server.should_exit = True
        thread.join(WAIT_S)
        inspector.close()
        watched.close()
        store.close()


def picture(page: Any, path: Path) -> None:
    """Write a picture of what is in view."""
    from PIL import Image

    with Image.open(io.BytesIO(page.screenshot())) as taken:
        small = taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    assert path.stat().st_size <= BYTES_MAX, f"{path} has {path.stat().st_size} bytes"


def take_all(folder: Path, page: Any, address: str, queue: LabelQueue, size: str, scheme: str) -> None:
    """Write the pictures of one size and one colour scheme."""
    from playwright.sync_api import expect

    end = f"{size}{'-dark' if scheme == 'dark' else ''}.png"
    page.goto(f"{address}sign-in")
    expect(page.get_by_label("Name")).to_be_visible()
    picture(page, folder / f"web-sign-in{end}")
    page.get_by_label("Name").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(address)
    for name, (way, text) in WAYS.items():
        page.goto(address + way)
        expect(page.get_by_text(text).locator("visible=true").first).to_be_visible()
        if name == "label":
            page.get_by_role("button", name="Show the model's guess").click()
            expect(page.get_by_text("because amount")).to_be_visible()
        page.wait_for_timeout(DRAWN_MS)
        picture(page, folder / f"web-{name}{end}")
    loan = "loan-17" if size else "loan-16"
    ask_for_features(queue, loan)
    page.goto(f"{address}label")
    while loan not in page.get_by_role("heading", level=1).inner_text():
        page.get_by_role("button", name="Skip").click()
        expect(page.get_by_text("skipped")).to_be_visible()
    picture(page, folder / f"web-features{end}")
    page.get_by_role("button", name="Answer without the rest").click()
    expect(page.get_by_text(f"{loan}: values given")).to_be_visible()


def main() -> None:
    """Write all pictures into the folder that is named."""
    from playwright.sync_api import expect, sync_playwright

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=WAIT_S * 1000)
    scheme = sys.argv[2] if len(sys.argv) > 2 else "light"
    with (
        tempfile.TemporaryDirectory() as directory,
        served(Path(directory)) as (address, queue),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for size, viewport in SIZES.items():
            context: dict[str, Any] = {"viewport": viewport, "color_scheme": scheme}
            page = browser.new_context(**context).new_page()
            page.set_default_timeout(WAIT_S * 1000)
            take_all(folder, page, address, queue, size, scheme)
            page.context.close()
        browser.close()


if __name__ == "__main__":
    main()
