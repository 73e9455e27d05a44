"""Tabs: the parts of the model page, each with an address of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from nicegui import ui

from streamapp.web.page_frame import Person
from streamapp.web.watch.watched import ModelRow
from streamapp.web.watch.watching import Watching, model_link

TABS: Final = {
    "overview": "Overview",
    "tree": "Tree",
    "labels": "Labels",
    "events": "Events",
    "explanation": "Explanation",
    "spec": "Spec",
}
"""Name by address of each tab, in the order of the page."""
FIRST: Final = "overview"


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters of the page's address."""

    key: str
    tab: str = FIRST
    kind: str = ""
    """Kind of events, for the events."""
    at: str = ""
    """Place of a record in instances, PARTITION:OFFSET, for tree and explanation."""

    def link(self, tab: str, **more: str) -> str:
        """Return the address of a tab of the same model."""
        return model_link(self.key, tab="" if tab == FIRST else tab, **more)


@dataclass(frozen=True, slots=True)
class TabPlace:
    """Objects that all tabs have."""

    watching: Watching
    person: Person
    asked: Asked


@dataclass(frozen=True, slots=True)
class Newest:
    """The state of the model in the topics."""

    model: ModelRow
    evaluation: dict[str, Any] | None


class Tab(Protocol):
    """The elements of one tab in one browser."""

    async def begin(self) -> None:
        """Fill the tab once, after the page has come to the browser."""

    async def show(self, newest: Newest) -> None:
        """Show records that came since the last call."""


def tab_links(asked: Asked) -> None:
    """Draw the links to all tabs of a model."""
    with ui.element("nav").classes("grove-tabs").props('aria-label="Parts of the model page"'):
        for tab, name in TABS.items():
            link = ui.link(name, asked.link(tab))
            if tab == asked.tab:
                link.props("aria-current=page")
