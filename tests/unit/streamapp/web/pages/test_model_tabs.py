"""The tabs of the model page in Chromium: each opens alone, by mouse and keyboard, in light and dark.

With GROVE_SCREENSHOTS=docs/screenshots the pictures of docs/web.md are made again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.patient_page import is_too_wide, patiently
from tests.unit.streamapp.web.model_rig import DRIFT_AT, KEY, served
from tests.unit.streamapp.web.test_accessibility import CHROMIUM, PATIENCE_MS, flaws

DESK, PHONE = {"width": 1300, "height": 900}, {"width": 390, "height": 800}
AT = "2:40"
SHOWN = {
    "overview": "Estimated over all records",
    "tree": "The path ends in node",
    "labels": "allowed by the budget",
    "events": "ddm: drift at error rate 31.0 %",
    "explanation": "The answer that was sent is the same.",
    "spec": "query strategy",
}
"""Text by tab, of its part that comes last."""


def test_each_tab_opens_alone_and_does_its_job(tmp_path: Path) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here")
    from playwright.sync_api import expect, sync_playwright

    problems: list[Any] = []
    pictures = Path(os.environ.get("GROVE_SCREENSHOTS", tmp_path))
    with served(tmp_path) as rig, sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        model = f"{rig.address}model?key={quote(KEY)}"

        def opened(size: dict[str, int], scheme: str) -> Any:
            context = browser.new_context(viewport=size, color_scheme=scheme)
            page = context.new_page()
            page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("request", lambda request: foreign(request.url))
            page.set_default_timeout(PATIENCE_MS)
            return page

        def foreign(url: str) -> None:
            if not url.startswith((rig.address, rig.address.replace("http", "ws"), "data:", "blob:")):
                problems.append(f"asked {url}")

        for size, scheme in ((DESK, "light"), (PHONE, "dark")):
            page = opened(size, scheme)
            for tab, text in SHOWN.items():
                page.goto(f"{model}&tab={tab}&at={AT}")
                expect(page.get_by_text(text).first).to_be_visible()
                problems += [(tab, scheme, flaw) for flaw in patiently(page, flaws)]
                name = "web-model" if tab == "overview" else f"web-model-{tab}"
                if size is DESK or tab in ("overview", "tree"):
                    name += "" if size is DESK else "-phone"
                    page.screenshot(path=pictures / f"{name}.png", full_page=True)
                if is_too_wide(page):
                    problems.append(f"{tab} is wider than {size['width']}")
            page.close()

        page = opened(DESK, "dark")
        rig.inspector.asked.clear()
        page.goto(model)
        _use_overview(page, expect)
        _use_events(page, expect)
        assert rig.inspector.asked == [], "a tab that is not open asks nothing"
        _use_explanation(page, expect)
        _use_tree(page, expect)
        browser.close()
    assert problems == []


def _use_overview(page: Any, expect: Any) -> None:
    """Read values by pointer, keyboard and table, and go to the drift that is marked."""
    expect(page.get_by_text("Estimated over all records")).to_be_visible()
    ink = page.evaluate("getComputedStyle(document.body).color")
    label = page.locator(".grove-chart svg text", has_text="recent labels").first
    expect(label).to_have_css("fill", ink)
    chart = page.locator(".grove-chart")
    box = chart.bounding_box()
    chart.hover(position={"x": box["width"] / 2, "y": box["height"] / 2})
    hovered = page.locator(".grove-chart svg text", has_text="all labels so far: ")
    expect(hovered).to_be_visible()
    keys = page.get_by_role("group", name="Accuracy against labels")
    keys.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    readout = page.locator(".grove-readout")
    expect(readout).to_contain_text("labels 50, all records, estimated: ")
    page.keyboard.press("End")
    expect(readout).to_contain_text("labels 1,200, ")
    page.get_by_text("Values as a table").click()
    expect(page.get_by_role("rowheader", name="1,200", exact=True)).to_be_visible()
    page.locator(".grove-chart svg text", has_text="drift").click()
    expect(page.get_by_text(SHOWN["events"])).to_be_visible()


def _use_events(page: Any, expect: Any) -> None:
    """See the events of the kind, after a reload too; then those of all kinds."""
    assert "tab=events" in page.url
    assert "kind=drift" in page.url
    for _ in range(2):
        expect(page.get_by_text("1–1 of 1", exact=True)).to_be_visible()
        page.reload()
    expect(page.get_by_text("1–1 of 1", exact=True)).to_be_visible()
    page.get_by_label("Kind").click()
    page.get_by_role("option", name="all kinds (32)").click()
    expect(page.get_by_text("1–20 of 32", exact=True)).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("21–32 of 32", exact=True)).to_be_visible()
    page.get_by_role("button", name="Previous").click()
    expect(page.get_by_text("1–20 of 32", exact=True)).to_be_visible()


def _use_explanation(page: Any, expect: Any) -> None:
    """Go from an event to the explanation of its record, and on to its path in the tree."""
    page.get_by_role("link", name=f"order-{DRIFT_AT}").first.click()
    expect(page.get_by_label("Place of the record")).to_have_value(f"2:{DRIFT_AT}")
    expect(page.get_by_role("heading", name="The model answered fraud (93.1 %)")).to_be_visible()
    expect(page.get_by_text("amount > 40 and country = DE")).to_be_visible()
    page.get_by_role("link", name="Its path in the present tree").click()


def _use_tree(page: Any, expect: Any) -> None:
    """Follow a record, fold and unfold by mouse and keyboard, find a feature, and see the whole tree."""
    expect(page.get_by_text("The path ends in node")).to_be_visible()
    items, selected = page.get_by_role("treeitem"), page.locator("[role=treeitem][aria-selected=true]")
    selected.hover()
    frame = page.locator(".grove-tree-box")
    assert _is_inside(selected.bounding_box(), frame.bounding_box()), "the end of the path is in the frame"
    drawn = items.count()
    assert drawn < 100, "a tree of 300 nodes begins folded"
    page.get_by_label("A record: PARTITION:OFFSET").fill("{")
    page.get_by_role("button", name="Show its path").click()
    expect(page.get_by_text("must be a place, PARTITION:OFFSET, or its features")).to_be_visible()
    page.get_by_label("A record: PARTITION:OFFSET").fill("9:9")
    page.keyboard.press("Enter")
    expect(page.get_by_text("there is none at this offset")).to_be_visible()
    page.get_by_label("or a record whose label is requested").click()
    page.get_by_role("option", name="order-9, requested").click()
    expect(page.get_by_text("The path ends in node")).to_be_visible()

    root = items.first
    root.focus()
    page.keyboard.press("ArrowLeft")
    expect(items).to_have_count(1)
    expect(root).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(items).to_have_count(drawn)
    drawing = page.locator(".grove-tree-box > div")
    drawing.evaluate("(drawing) => { drawing.innerHTML = drawing.innerHTML }")
    expect(root).to_be_focused()  # a new drawing keeps the focus: the next keys are pressed at once
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("[role=treeitem][aria-selected=true]:focus")).to_have_count(1)
    expect(page.get_by_text("its records have")).to_be_visible()
    folded = page.locator("[role=treeitem][aria-expanded=false]").first
    node = page.locator(f"[data-node='{folded.get_attribute('data-node')}']")
    node.scroll_into_view_if_needed()
    before = node.bounding_box()
    node.locator("[data-fold]").click()
    expect(node).to_have_attribute("aria-expanded", "true")
    expect(node).to_be_focused()
    expect(items).not_to_have_count(drawn)
    after = node.bounding_box()
    assert abs(after["x"] - before["x"]) < 3, "a node keeps its place while it is unfolded"

    page.get_by_label("Find a feature").fill("amou")
    expect(page.get_by_text("nodes test it")).to_be_visible()
    expect(page.locator(".grove-match").first).to_be_attached()
    page.get_by_role("button", name="Next node with the feature").click()
    expect(page.locator(".grove-match:focus")).to_have_count(1)
    page.get_by_role("button", name="Whole tree in the frame").click()
    expect(page.locator(".grove-fit")).to_have_count(1)
    assert _is_inside(page.locator(".grove-tree-drawing").bounding_box(), frame.bounding_box())
    page.get_by_text("Nodes as a table").click()
    expect(page.get_by_role("cell", name="all records")).to_be_visible()


def _is_inside(inner: dict[str, float], outer: dict[str, float]) -> bool:
    return all(
        outer[start] <= inner[start] and inner[start] + inner[size] <= outer[start] + outer[size]
        for start, size in (("x", "width"), ("y", "height"))
    )
