"""Spec: the parts that the model is made of, its features and classes."""

from __future__ import annotations

from typing import Any, Final

import orjson
from nicegui import ui

from streamapp.web.clock import now_ms
from streamapp.web.formatting import cut, number
from streamapp.web.layout.data_table import Column, DataTable, text_cell
from streamapp.web.layout.times import relative
from streamapp.web.pages.model.tabs import Newest, TabPlace
from streamapp.web.watch.inspector import Found
from streamapp.web.watch.watching import Looking, facts, heading

PARTS: Final = {
    "learner": "learner",
    "query": "query strategy",
    "budget": "budget of labels",
    "drift": "drift detector",
    "evaluation": "evaluation",
    "acquire": "acquisition of features",
}
CLASSES_LISTED: Final = 100


class SpecTab:
    """The elements of the tab in one browser."""

    def __init__(self, place: TabPlace) -> None:
        self._place = place
        heading("Spec", 2)
        self._looking = Looking(place.watching.inspector, self._draw, place.person)

    async def begin(self) -> None:
        """Look up the spec."""
        await self._looking.look("model", fresh_ms=60_000, key=self._place.asked.key)

    async def show(self, newest: Newest) -> None:
        """Nothing: the spec is looked up once."""

    def _draw(self, reply: Found) -> None:
        model = reply.answer
        spec, summary = model["spec"], model["summary"]
        ui.label(f"As it was {relative(reply.at_ms, now_ms())}.").classes("grove-muted")
        values = {title: part_in_words(spec[part]) for part, title in PARTS.items() if spec.get(part)}
        rest = {name: value for name, value in spec.items() if name not in PARTS}
        values |= {name: cut(part_in_words(value), 300) for name, value in rest.items()}
        values["size"] = (
            f"{summary['leaves']:,} leaves, depth {summary['depth']}, {model['bytes']:,} bytes, "
            f"{'frozen' if model['frozen'] else 'learning'}"
        )
        facts(values)
        heading("Classes", 2)
        shown = ", ".join(cut(name) for name in model["classes"][:CLASSES_LISTED])
        ui.label(shown or "No class is known yet.").classes("grove-text")
        heading("Features", 2)
        columns = {"name": Column("Feature"), "kind": Column("Kind")}
        features = DataTable("Features", columns, key="name", empty="The model has no feature yet.")
        features.show(
            [
                {"name": text_cell(cut(name, 200)), "kind": text_cell(kind)}
                for name, kind in model["attributes"]
            ]
        )
        if model["attributes_left_out"]:
            ui.label(f"and {number(model['attributes_left_out'])} more")
        with ui.element("details").classes("grove-details"):
            with ui.element("summary"):
                ui.label("As JSON, for a control or GROVE_MODEL_SPEC")
            text = orjson.dumps(spec, option=orjson.OPT_INDENT_2).decode()
            ui.label(text).classes("grove-spec").props('tabindex=0 role=region aria-label="Spec as JSON"')


def part_in_words(part: Any) -> str:
    """Return a part of a spec with its parameters.

    >>> part_in_words({"name": "count", "limit": 0.5, "window": 100}), part_in_words(False)
    ('count: limit 0.5, window 100', 'no')
    """
    if isinstance(part, dict):
        name = str(part.get("name", ""))
        rest = ", ".join(f"{key} {part_in_words(value)}" for key, value in part.items() if key != "name")
        return ": ".join(text for text in (name, rest) if text)
    if isinstance(part, bool):
        return "yes" if part else "no"
    return "none" if part is None else str(part)
