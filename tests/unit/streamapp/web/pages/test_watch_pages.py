"""Pages on models, as NiceGUI's own simulation of a user sees them."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from streamapp.web.watch.watched import Watched
from tests.unit.streamapp.web.watch.test_watched import evaluated, said, split

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports complain of is not ours
    from nicegui import ui
    from nicegui.testing.user_simulation import user_simulation

    from streamapp.web.charts.accuracy_chart import RECENT
    from streamapp.web.page_frame import Person
    from streamapp.web.pages.compare_page import ComparePage
    from streamapp.web.pages.dead_letters_page import DeadLettersPage
    from streamapp.web.pages.experiments_page import ExperimentsPage
    from streamapp.web.pages.model.model_page import ModelPage
    from streamapp.web.pages.model.tabs import TABS, Asked
    from streamapp.web.pages.models_page import ModelsPage
    from streamapp.web.watch.inspector import InspectionError, Inspector
    from streamapp.web.watch.watching import Watching

NASTY = "<b>shop</b>"
PATIENCE = 600
"""Looks of a tenth of a second at a page that may need a processor and a disk for its next text."""


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    watched = Watched(":memory:")
    watched.begin({"prefix": "t."})
    made = said(NASTY, "created", 0, learner="h-tree")
    watched.apply([evaluated(NASTY, 40, 0.75)], [made, split(NASTY, 0, 7, gap=0.25)], {})
    watched.apply([evaluated(f"k{n}", n + 1) for n in range(60)], [], {})
    inspector = Inspector({})  # without settings, and nobody answers
    notes: list[str] = []
    yield Watching(watched, inspector, tmp_path, lambda *given: notes.append(str(given)))
    inspector.close()
    watched.close()


def play(page: Callable[[], object], story: Callable[[Any], Awaitable[None]]) -> None:
    async def acted() -> None:
        async with user_simulation(lambda: page()) as user:
            await user.open("/")
            await story(user)

    asyncio.run(acted())


def test_the_list_is_turned_and_searched(watching: Watching) -> None:
    pages: list[ModelsPage] = []

    async def story(user: Any) -> None:
        await user.should_see("1–25 of 61", retries=PATIENCE)
        table = pages[0].table
        await table.turn_to(2)
        await user.should_see("26–50 of 61", retries=PATIENCE)
        await table.filter_by("SHOP")
        await user.should_see("1–1 of 1", retries=PATIENCE)
        assert table.table.rows[0]["key_link"] == "/model?key=%3Cb%3Eshop%3C%2Fb%3E"
        await table.filter_by("no such model")
        await user.should_see("No row has this text.", retries=PATIENCE)

    play(lambda: pages.append(ModelsPage(watching, Person("ann"))), story)


def test_a_model_is_shown_though_its_tree_cannot_be_had(
    watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def overview(user: Any) -> None:
        await user.should_see(NASTY, retries=PATIENCE)
        await user.should_see("40 labels, 1 split, 0 drifts", retries=PATIENCE)
        await user.should_see("75.0 %", retries=PATIENCE)
        await user.should_see("There is no figure over all records: no label was drawn", retries=PATIENCE)

    async def tree(user: Any) -> None:
        await user.should_see("see its log", retries=PATIENCE)

    monkeypatch.setattr(sys, "executable", "/bin/false")
    play(lambda: ModelPage(watching, Person("ann"), Asked(NASTY)), overview)
    play(lambda: ModelPage(watching, Person("ann"), Asked(NASTY, "tree")), tree)


@pytest.mark.parametrize("tab", [*TABS, "<b>none</b>"])
def test_a_model_that_nobody_has_heard_of_is_no_error(
    watching: Watching, tab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(user: Any) -> None:
        await user.should_see("Nothing is known of this model yet", retries=PATIENCE)

    monkeypatch.setattr(sys, "executable", "/bin/false")
    play(lambda: ModelPage(watching, Person("ann"), Asked("nobody", tab)), story)


def test_events_are_filtered_turned_and_ordered(watching: Watching) -> None:
    watching.watched.apply([], [split(NASTY, at, 10 + at) for at in range(50)], {})
    watching.watched.apply([], [said(NASTY, "drift", 99, level="drift", detector="ddm")], {})

    async def story(user: Any) -> None:
        await user.should_see("1–20 of 53", retries=PATIENCE)
        user.find("Next").click()
        await user.should_see("21–40 of 53", retries=PATIENCE)

    async def of_a_kind(user: Any) -> None:
        await user.should_see("1–1 of 1", retries=PATIENCE)

    play(lambda: ModelPage(watching, Person("ann"), Asked(NASTY, "events")), story)
    play(lambda: ModelPage(watching, Person("ann"), Asked(NASTY, "events", kind="drift")), of_a_kind)


def test_two_curves_are_compared(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(user: Any) -> None:
        await user.should_see("Compare two models", retries=PATIENCE)
        await user.should_see("see its log", retries=PATIENCE)
        (chart,) = user.find(kind=ui.echart).elements
        assert {f"{NASTY}: {RECENT}", f"k3: {RECENT}"} <= set(chart.options["legend"]["data"])

    monkeypatch.setattr(sys, "executable", "/bin/false")
    play(lambda: ComparePage(watching, Person("ann"), NASTY, "k3"), story)


def test_dead_letters_and_results_say_when_there_are_none(
    watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody(user: Any) -> None:
        await user.should_see("see its log", retries=PATIENCE)

    async def none(user: Any) -> None:
        await user.should_see("There is no result in", retries=PATIENCE)

    monkeypatch.setattr(sys, "executable", "/bin/false")
    play(lambda: DeadLettersPage(watching, Person("ann")), nobody)
    play(lambda: ExperimentsPage(watching, Person("ann")), none)


def test_results_are_shown_with_what_was_published(watching: Watching) -> None:
    folder = watching.experiments / "vfs-table1-quick"
    folder.mkdir()
    table = [{"stream": "SEA", "attributes": 3, "attributes published": 3}]
    body = {"experiment": "vfs-table1", "size": "quick", "title": "VFS, Table 1", "tables": {"table1": table}}
    (folder / "results.json").write_bytes(orjson.dumps(body))
    (watching.experiments / "noise.json").write_text("[]")

    async def story(user: Any) -> None:
        await user.should_see("1 experiments and 0 runs", retries=PATIENCE)
        await user.should_see("VFS, Table 1", retries=PATIENCE)

    play(lambda: ExperimentsPage(watching, Person("ann")), story)


def test_questions_go_to_a_process_and_its_errors_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "server.py"
    module.write_text(
        "import sys\nfrom streamapp.errors import UsageError\n"
        "from streamapp.tools.inspection.server import serve\n"
        "def twice(n):\n    if n < 0: raise UsageError('n must not be negative')\n    return 2 * n\n"
        "serve(sys.stdin.buffer, sys.stdout.buffer.raw, {'twice': twice})\n"
    )
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {module}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    inspector = Inspector({"PYTHONPATH": str(Path(__file__).parents[5])})
    try:
        first = inspector.look("twice", n=4)
        assert first.answer == 8
        assert inspector.look("twice", n=4, fresh_ms=600_000) is first, "kept"
        with pytest.raises(InspectionError, match="must not be negative"):
            inspector.look("twice", n=-1)
        assert inspector.do("twice", n=5) == 10
        assert inspector._process is not None
        inspector._process.kill()
        inspector._process.wait()
        assert inspector.look("twice", n=6).answer == 12, "another process is started"
    finally:
        inspector.close()
    with pytest.raises(InspectionError, match="ends"):
        inspector.look("twice", n=1)
