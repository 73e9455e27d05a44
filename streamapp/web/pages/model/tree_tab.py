"""Tree tab: the tree at the committed offsets, and the path of a record in it."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson
from nicegui import ui

from streamapp.web.clock import now_ms
from streamapp.web.formatting import cut, share
from streamapp.web.layout.data_table import Cell, Column, DataTable, text_cell
from streamapp.web.layout.times import exact, relative
from streamapp.web.pages.model.node_table import nodes_table
from streamapp.web.pages.model.tabs import Newest, TabPlace
from streamapp.web.queue.overview import WaitingRecord
from streamapp.web.tree.outline_rows import matched
from streamapp.web.tree.tree_view import TreeView
from streamapp.web.watch.inspector import Found, InspectionError
from streamapp.web.watch.watching import Looking, heading

FRESH_MS: Final = 60_000
RECORD_MAX: Final = 8192
"""Characters of a typed record, at most."""
BAD_RECORD: Final = (
    'The record must be a place, PARTITION:OFFSET, or its features as a JSON object, as {"amount": 12.5}.'
)
CAVEAT: Final = (
    "The decrease of impurity by the tests of each feature, averaged over the trees. It shows the tests of "
    "these trees, not causes: features with many values get too much, and one of several equal features "
    "may get all of it."
)


class TreeTab:
    """The elements of the tab in one browser."""

    def __init__(self, place: TabPlace) -> None:
        self._place = place
        self._view: TreeView | None = None
        self._waiting: dict[str, WaitingRecord] = {}
        heading("The path of a record", 2)
        with ui.element("div").classes("grove-tree-tools"):
            self._record = ui.input(
                "A record: PARTITION:OFFSET in instances, or its features as JSON", value=place.asked.at
            )
            self._record.props(f"maxlength={RECORD_MAX}").classes("grove-record")
            self._record.on("keydown.enter", self._typed)
            self._requests = ui.select(
                {}, label="or a record whose label is requested", on_change=self._chosen
            )
            self._requests.classes("grove-place").set_visibility(False)
            ui.button("Show its path", on_click=self._typed).props("no-caps")
        self._answer = ui.label().props("role=status").classes("grove-text")
        with ui.row().classes("items-center grove-tree-title"):
            heading("Tree", 2)
            ui.button("Read the tree again", on_click=lambda: self._look(0)).props("no-caps outline")
        self._looking = Looking(place.watching.inspector, self._draw, place.person)

    async def begin(self) -> None:
        """Look up the tree and the requests, and show the path of the address's record."""
        records = await asyncio.to_thread(self._place.watching.waiting, self._place.asked.key)
        self._waiting = {str(at): record for at, record in enumerate(records)}
        if self._waiting:
            now = now_ms()
            self._requests.set_options(
                {
                    at: f"{cut(record.instance_id)}, requested {relative(record.asked_ms, now)}"
                    for at, record in self._waiting.items()
                }
            )
            self._requests.set_visibility(True)
        await self._look(FRESH_MS)

    async def show(self, newest: Newest) -> None:
        """Nothing: the tree is looked up when a person wants it."""

    async def _look(self, fresh_ms: int) -> None:
        await self._looking.look("model", fresh_ms=fresh_ms, key=self._place.asked.key)
        if self._record.value:
            await self._typed()

    async def _typed(self) -> None:
        text = str(self._record.value or "").strip()
        if not text.startswith("{"):
            ui.navigate.history.replace(self._place.asked.link("tree", at=text))
            await self._show_path(at=text)
            return
        try:
            features = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            self._answer.set_text(f"{BAD_RECORD} {error}.")
            return
        await self._show_path(features=features)

    async def _chosen(self) -> None:
        record = self._waiting.get(str(self._requests.value))
        if record is not None:
            await self._show_path(features=record.features)

    async def _show_path(self, **record: Any) -> None:
        """Ask for the path of a record, and highlight it."""
        if self._view is None:
            self._answer.set_text("There is no tree yet in which the record could have a path.")
            return
        self._answer.set_text("Looking for its path …")
        inspector, key = self._place.watching.inspector, self._place.asked.key
        try:
            reply = await asyncio.to_thread(inspector.look, "path", fresh_ms=0, key=key, **record)
        except InspectionError as error:
            self._answer.set_text(cut(str(error), 400))
            return
        answer = reply.answer
        node = self._view.show_path(answer["conditions"])
        self._answer.set_text(path_in_words(answer, node))

    def _draw(self, reply: Found) -> None:
        model, nodes = reply.answer, reply.answer["nodes"]
        splits = matched(nodes, self._place.watching.watched.splits(self._place.asked.key))
        positions = ", ".join(f"{source} {at}" for source, at in model["taken"]["positions"].items())
        summary = model["summary"]
        words = f"{len(nodes):,} nodes, {summary['leaves']:,} leaves, depth {summary['depth']}; "
        words += f"as it was {relative(reply.at_ms, now_ms())}"
        ui.label(words).props(f'title="{exact(reply.at_ms)}, committed offsets: {positions}"')
        if model["cut"]:
            ui.label("The tree is too large to be drawn whole: its deepest levels are left out.")
        self._view = TreeView(nodes, model["classes"], splits)
        ui.label(
            "A bar is wider the more records came through its node; its colours are the shares of the "
            "classes. A click on a node shows its details, a click on its sign folds it. "
            "Keys: arrows, Enter, + and -."
        ).classes("grove-muted")
        with ui.element("details").classes("grove-details") as details:
            with ui.element("summary"):
                ui.label("Nodes as a table, parents first")
            rows = ui.html(sanitize=False)

        def fill(event: Any) -> None:
            rows.set_content(nodes_table(nodes, model["classes"], splits) if event.args else "")

        details.on("toggle", fill, js_handler="(event) => emit(event.target.open)")
        if model["importances"]:
            heading("Importances of the features", 2)
            ui.label(CAVEAT).classes("grove-muted")
            columns = {"name": Column("Feature"), "share": Column("Share of the decrease", numeric=True)}
            importances = DataTable("Importances of the features", columns, key="name", empty="")
            importances.show(
                [
                    {"name": text_cell(cut(name, 80)), "share": Cell(share(part), part)}
                    for name, part in model["importances"]
                ]
            )


def path_in_words(answer: dict[str, Any], node: int | None) -> str:
    """Return the answer to a record with the conditions on its path.

    node: where the path ends in the drawn tree; None: the tree has no such path.
    """
    label = answer["label"]
    if label is None:
        return "The model knows no class yet."
    sentence = f"The model answers {cut(str(label))} ({share(answer['probabilities'].get(label))})"
    if node is None:
        return f"{sentence}. The drawn tree has no such path: it has changed, or the model has several trees."
    conditions = [cut(str(text), 120) for text in answer["conditions"]]
    because = f" because {' and '.join(conditions)}" if conditions else ""
    return f"{sentence}{because}. The path ends in node {node}."
