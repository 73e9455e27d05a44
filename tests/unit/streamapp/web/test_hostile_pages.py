"""Scripts in names, values, labels, annotators and addresses: every page shows them as text, in Chromium.

Here they are served without a broker; tests/broker/test_hostile_records.py walks them with one and a worker.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from streamapp.web.annotation_terms import Terms
from streamapp.web.application import WebPlan, _server
from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.guard import Entry
from streamapp.web.pages.surroundings import Surroundings
from streamapp.web.queue.cards import Attribute, Range, Request
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from streamapp.web.users import Sessions
from streamapp.web.watch.inspector import Inspector
from streamapp.web.watch.watched import Evaluated, Said, Watched
from streamapp.web.watch.watching import Watching
from tests.hostile_text import HOSTILE, START, hover_charts, look, text
from topics.columns.records import EvaluationRecord, ModelEvent
from topics.definitions import TopicNames

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports complain of is not ours
    from nicegui.testing.general import nicegui_reset_globals

CHROMIUM = Path("/usr/bin/chromium")
PATIENCE_MS = 120_000
KEY, OTHER = text("key"), text("other key")


def request(name: str, **members: Any) -> Request:
    """A request for a label, hostile wherever a worker copies what records say."""
    asked = Request(
        0,
        KEY,
        text(f"request {name}"),
        text(name),
        now_ms() - 90_000,
        -1,
        0.37,
        text("class"),
        text("strategy"),
        {text("feature"): text("value"), text("number"): 12.5, text("none"): None},
    )
    asked = replace(
        asked,
        rules=text("rules"),
        shares={text("class"): 0.6, text("second class"): 0.4},
        seen={text("number"): Range(0.5, 980.0, 12_407)},
    )
    return replace(asked, **members)


def asked() -> tuple[list[Request], list[Attribute], list[tuple[str, str]]]:
    """What models ask, what controls declare of features, and the classes they name."""
    wanted = (text("wanted"), text("chosen"))
    requests = [
        request("instance"),
        *(request(f"sure {n}", utility=0.01 * n) for n in range(3)),
        replace(request("features"), prediction=None, wanted=wanted, cost=5.0, rules=None, shares={}),
    ]
    declared = [
        Attribute(KEY, text("wanted")),
        Attribute(KEY, text("chosen"), "nominal", (text("a value"), text("another value"))),
    ]
    return requests, declared, [(KEY, text("class")), (KEY, text("declared class"))]


def watched(made: Watched) -> None:
    """Evaluations and events, hostile wherever their topics have texts."""
    evaluations = [
        Evaluated(
            key,
            0,
            labels,
            EvaluationRecord(
                *(2 * labels, labels, 0.8, 0.7, 0.5, math.nan, math.nan, math.nan, 0.5),
                version=labels,
                classes={text("class"): labels, text("second class"): 1},
            ),
        )
        for key in (KEY, OTHER)
        for labels in range(10, 200, 10)
    ]
    details: dict[str, dict[str, Any]] = {
        "created": {part: text(part) for part in ("learner", "query", "budget", "drift")},
        "split": {"node": 7, "attribute": text("attribute"), "test": "category"}
        | {"category": text("category"), "reason": text("reason"), "gap": text("gap"), "labels": text("n")},
        "revised": {"action": text("action"), "former": {"attribute": text("former")}, "node": [HOSTILE]},
        "pruned": {"node": {HOSTILE: HOSTILE}, "former": text("former")},
        "drift": {part: text(part, 70) for part in ("level", "detector", "action", "error_rate", "node")},
        "growth-stopped": {"leaves": text("leaves")},
    }
    events = [
        Said(key, 0, ModelEvent(kind, text("topic"), n, n, n, n, text("instance"), detail))  # type: ignore[arg-type]
        for key in (KEY, OTHER)
        for n, (kind, detail) in enumerate(details.items())
    ]
    made.apply(evaluations, events, {})


def results(folder: Path) -> None:
    """Results of experiments and runs whose texts, and names of files, are hostile."""
    name = "".join(letter for letter in text("experiment", 120) if letter not in '/\\"')
    (folder / name).mkdir(parents=True)
    body = {
        "experiment": text("experiment"),
        "size": text("size"),
        "title": text("title"),
        "tables": {text("table"): [{text("column"): text("cell"), "n": 1}]},
    }
    (folder / name / "results.json").write_bytes(orjson.dumps(body))
    svg = f"<svg xmlns='http://www.w3.org/2000/svg'><script>window.__hit=10</script><text>{'x'}</text></svg>"
    (folder / name / f"{name[:60]}.svg").write_text(svg)
    run = {"accuracy": 0.5, "records_per_second": 9, text("figure"): text("said")}
    (folder / f"run {name[:60]}.json").write_bytes(orjson.dumps(run))


@contextmanager
def served(tmp_path: Path) -> Iterator[str]:
    """All pages of an operator on this machine, whose name is hostile too; gives their address."""
    store, made, inspector = Store(":memory:"), Watched(":memory:"), Inspector({})
    made.begin({"prefix": "t."})
    inspector.close()  # no broker is there to be asked; pages show why there is no answer
    queue = LabelQueue(store, Terms(sure_utility=0.3))
    requests, declared, classes = asked()
    queue.topics.apply(requests, [], {}, now_ms(), classes, attributes=declared)
    watched(made)
    results(tmp_path / "results")
    units = {text("number"): text("unit")}
    trouble = text("trouble")
    around = Surroundings(queue, lambda: queue.counts(now_ms()), lambda: trouble, False, False, units)
    audit = AuditLog(store)
    entry = Entry(Sessions(store), None, text("annotator"), True, audit)

    def noted(user: str, action: str, detail: str) -> None:
        audit.note(user, action, now_ms(), detail=detail)

    ready, address = threading.Event(), list[str]()

    def started(where: str) -> None:
        address.append(where)
        ready.set()

    watching = Watching(made, inspector, tmp_path / "results", noted)
    server = _server(WebPlan(tmp_path, TopicNames(), port=0), around, entry, started, watching)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert ready.wait(PATIENCE_MS / 1000)
        yield address[0]
    finally:
        server.should_exit = True
        thread.join(PATIENCE_MS / 1000)
        made.close()
        store.close()


def test_no_page_runs_or_draws_what_records_say(tmp_path: Path) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here")
    from playwright.sync_api import expect, sync_playwright

    found: list[str] = []
    with nicegui_reset_globals(), served(tmp_path) as address, sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        sent: list[str] = []
        page.on("request", lambda each: sent.append(each.url))
        page.on("dialog", lambda dialog: (found.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: found.append(f"{page.url[:80]}: {error}"))

        def open_(way: str, *shown: str) -> None:
            page.goto(address + way)
            for each in shown:
                expect(page.get_by_text(each).first).to_be_visible()
            hover_charts(page)
            found.extend(look(page, address, sent))

        start = START
        open_("", f"key {start}")
        open_(
            "label",
            f"key {start}",
            f"feature {start}",
            f"value {start}",
            f"declared class {start}",
            f"unit {start}",
        )
        open_("sure", f"sure 0 {start}")
        page.get_by_role("button", name="The ticked records").click()
        expect(page.get_by_text("3 times")).to_be_visible()
        found += look(page, address, sent)
        page.goto(f"{address}label")
        page.get_by_role("button", name="class").first.click()
        expect(page.get_by_text(f"wanted {start}").first).to_be_visible()
        page.get_by_label("chosen").first.click()
        expect(page.get_by_role("option", name="another value")).to_be_visible()
        found += look(page, address, sent)
        open_("models", f"key {start}", f"learner {start}")
        page.get_by_label("Part of a model's name").fill(HOSTILE)
        found += look(page, address, sent)
        model = f"model?key={quote(KEY)}&at={quote(HOSTILE)}&kind={quote(HOSTILE)}&tab="
        open_(f"{model}{quote(HOSTILE)}", f"key {start}", "all labels so far")
        open_(f"{model}events", "No such event.")
        open_(f"model?key={quote(KEY)}&tab=events", "split on attribute", "level <img")
        for tab in ("tree", "labels", "explanation", "spec"):
            open_(f"{model}{tab}", "the application ends")
        open_(f"model?key={quote(HOSTILE)}", "Nothing is known of this model yet")
        open_(f"compare?first={quote(KEY)}&second={quote(OTHER)}", f"other key {start}")
        open_("experiments", f"title {start}", f"column {start}", f"cell {start}")
        open_(f"dead-letters?reason={quote(HOSTILE)}&key={quote(HOSTILE)}", "Dead letters")
        for label in ("Reason", "Model", "PARTITION:OFFSET"):
            page.get_by_label(label, exact=True).fill(HOSTILE)
        page.get_by_role("button", name="Show", exact=True).click()
        page.get_by_role("button", name="Skip").click()
        found += look(page, address, sent)
        open_("partitions", "Partitions")
        for way in (quote(HOSTILE), f"model/{quote(HOSTILE)}", f"_nicegui/{quote(HOSTILE)}", "sign-in"):
            page.goto(address + way)
            found += look(page, address, sent)
        browser.close()
    assert found == []
