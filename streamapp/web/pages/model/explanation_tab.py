"""Explanation: why the model gave its answer to one record."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Mapping
from typing import Any, Final

from nicegui import ui

from streamapp.web.formatting import cut, number, share
from streamapp.web.pages.model.events_tab import record_place
from streamapp.web.pages.model.tabs import Newest, TabPlace
from streamapp.web.watch.inspector import Found
from streamapp.web.watch.watching import Looking, facts, heading

RECENT: Final = 8
"""Records of recent events that are proposed."""
SENT: Final = {
    "equal": "The answer that was sent is the same.",
    "different": "Another answer was sent: by another release or platform, or before a reset of offsets.",
    "not-found": "The sent answer is not on its topic any more, or the record was not answered.",
}
INTRODUCTION: Final = (
    "The model is rebuilt as it was right before the record, and answers it again. This may take a while."
)


class ExplanationTab:
    """The elements of the tab in one browser."""

    def __init__(self, place: TabPlace) -> None:
        self._place = place
        heading("Where an answer came from", 2)
        ui.label(INTRODUCTION).classes("grove-muted")
        with ui.element("div").classes("grove-tree-tools"):
            self._at = ui.input("Place of the record in instances, PARTITION:OFFSET", value=place.asked.at)
            self._at.props("maxlength=40").classes("grove-record").on("keydown.enter", self._explain)
            ui.button("Explain", on_click=self._explain).props("no-caps")
        self._recent = ui.row().classes("grove-marks")
        self._partition = 0
        self._looking = Looking(place.watching.inspector, self._draw, place.person)

    async def begin(self) -> None:
        """Propose records, and explain the record of the address."""
        watched, asked = self._place.watching.watched, self._place.asked
        events = await asyncio.to_thread(watched.events, asked.key, count=10 * RECENT)
        records = (record_place(event, self._partition) for event in events)
        places = list(dict.fromkeys(place for place in records if place is not None))[:RECENT]
        with self._recent:
            if places:
                ui.label("Records that led to recent events:")
            for place in places:
                ui.link(place, asked.link("explanation", at=place)).classes("grove-mark")
        if asked.at:
            await self._look(asked.at)

    async def show(self, newest: Newest) -> None:
        """Note the partition of the model; an explanation itself does not change."""
        self._partition = newest.model.partition

    async def _explain(self) -> None:
        at = str(self._at.value or "").strip()
        ui.navigate.history.replace(self._place.asked.link("explanation", at=at))
        await self._look(at)

    async def _look(self, at: str) -> None:
        await self._looking.look("explanation", key=self._place.asked.key, at=at)

    def _draw(self, reply: Found) -> None:
        document = reply.answer
        prediction = document["prediction"]
        if document["record"] is None:
            ui.label("There is no record at this offset: it is a marker, or compaction removed the record.")
            return
        if prediction is None:
            ui.label(cut(f"The record is of the model {document['record']!r}, or is a dead letter.", 200))
            return
        for refused in prediction["refused"]:
            ui.label(cut(str(refused), 400))
        for answer in prediction["answers"]:
            heading(answer_in_words(answer), 2)
            ui.html(probabilities_table(answer["probabilities"]), sanitize=False).classes("w-full")
            facts(reasons(answer))
        ui.label(SENT.get(prediction["sent"], SENT["not-found"]))
        if prediction["answers"]:
            ui.link(
                "Its path in the present tree", self._place.asked.link("tree", at=str(document["at"]))
            ).classes("grove-mark")


def answer_in_words(answer: Mapping[str, Any]) -> str:
    """Return the answer to one instance as a sentence.

    >>> answer_in_words({"id": "i5", "label": "fraud", "probabilities": {"fraud": 0.9312}})
    'The model answered fraud (93.1 %) to the instance i5.'
    """
    name = cut(str(answer["id"]), 80)
    if answer["label"] is None:
        return f"The model knew no class yet when the instance {name} came."
    probability = share(answer["probabilities"].get(answer["label"]))
    return f"The model answered {cut(str(answer['label']))} ({probability}) to the instance {name}."


def reasons(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return why the model answered so, how much it had learned, and why it requested the label or not."""
    learned = f"{number(answer['version'])} labels"
    if answer["path"] == "all":
        why = f"its tree had no test yet, so it answered from all of its {learned}"
    else:
        why = (
            f"{cut(str(answer['path']), 2000)}. The answer comes from the labels of the records that met "
            "all of these conditions"
        )
    request = "was requested" if answer["asked"] else "was not requested"
    return {"because": why, "learned before": learned, "its label": f"{request}: {answer['why']}"}


def probabilities_table(probabilities: Mapping[str, float]) -> str:
    """Return at most ten classes by their probabilities as HTML; texts are escaped."""
    most = sorted(probabilities.items(), key=lambda item: (-item[1], item[0]))[:10]
    rows = "".join(
        f'<tr><th scope="row">{html.escape(cut(name))}</th><td class="grove-number">{share(part)}</td></tr>'
        for name, part in most
    )
    return (
        '<table class="grove-table grove-shares"><thead><tr><th scope="col">Class</th>'
        f'<th scope="col" class="grove-number">Probability</th></tr></thead><tbody>{rows}</tbody></table>'
    )
