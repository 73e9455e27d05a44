"""Model page: its state at the top, and the tab of its address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from nicegui import ui

from streamapp.web.clock import now_ms
from streamapp.web.formatting import cut, number
from streamapp.web.layout.times import exact, relative
from streamapp.web.page_frame import Person
from streamapp.web.pages.model.events_tab import EventsTab
from streamapp.web.pages.model.explanation_tab import ExplanationTab
from streamapp.web.pages.model.labels_tab import LabelsTab
from streamapp.web.pages.model.overview_tab import OverviewTab
from streamapp.web.pages.model.spec_tab import SpecTab
from streamapp.web.pages.model.tabs import FIRST, TABS, Asked, Newest, Tab, TabPlace, tab_links
from streamapp.web.pages.model.tree_tab import TreeTab
from streamapp.web.watch.watched import ModelRow
from streamapp.web.watch.watching import LOOK_S, Watching, heading, watch_frame

UNKNOWN: Final = (
    "Nothing is known of this model yet: no evaluation and no event has come. A model begins with the first "
    "record of its key."
)
_TABS: Final[dict[str, Callable[[TabPlace], Tab]]] = {
    "overview": OverviewTab,
    "tree": TreeTab,
    "labels": LabelsTab,
    "events": EventsTab,
    "explanation": ExplanationTab,
    "spec": SpecTab,
}


class ModelPage:
    """The elements of the page on one model in one browser."""

    def __init__(self, watching: Watching, person: Person, asked: Asked) -> None:
        """asked: an unknown tab is the first one."""
        if asked.tab not in TABS:
            asked = Asked(asked.key, FIRST)
        self._watching, self._person, self._asked = watching, person, asked
        self._seen: tuple[Any, ...] = ()
        with watch_frame("/models", person, watching):
            heading(asked.key)
            self._state = ui.label().props("role=status").classes("grove-muted")
            tab_links(asked)
            self._tab = _TABS[asked.tab](TabPlace(watching, person, asked))
        ui.timer(LOOK_S, self.tick)
        ui.timer(0.0, self._begin, once=True)

    async def _begin(self) -> None:
        await self.tick()
        await self._tab.begin()

    async def tick(self) -> None:
        """Show records that came from the topics since the last tick."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        watched, key = self._watching.watched, self._asked.key
        model = await asyncio.to_thread(watched.model, key)
        if model is None:
            self._state.set_text(UNKNOWN)
            return
        self._state.set_text(state_in_words(model, now_ms()))
        self._state.props(f'title="{exact(model.last_ms)}"')
        evaluation = await asyncio.to_thread(watched.evaluation, key)
        last = await asyncio.to_thread(watched.events, key, count=1)
        seen = (evaluation, last)
        if seen != self._seen:
            self._seen = seen
            await self._tab.show(Newest(model, evaluation))


def state_in_words(model: ModelRow, now: int) -> str:
    """Return the learner of a model, how far it is, and when it was heard of."""
    state = f", {model.state}" if model.state else ""
    named = {"record": model.records, "label": model.labels, "split": model.splits, "drift": model.drifts}
    counts = ", ".join(f"{number(n)} {name}{'' if n == 1 else 's'}" for name, n in named.items())
    return (
        f"{cut(model.learner or 'a model')}{state}: {counts}; "
        f"partition {model.partition}; newest evaluation or event {relative(model.last_ms, now)}"
    )
