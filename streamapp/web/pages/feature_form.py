"""Feature form: a field for each requested feature, with a box for features that cannot be obtained."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from nicegui import ui

from streamapp.web.queue.cards import TEXT_MAX, Attribute, Card, Given

NOT_TO_BE_HAD = "not available"


class FeatureForm:
    """The fields of the card on display. There are none if the card is for a class."""

    def __init__(self, send: Callable[[bool], Awaitable[None]], units: Mapping[str, str]) -> None:
        """Make the container of the fields; send: called with True if the rest need not be waited for."""
        self._send, self._units = send, units
        self._fields: dict[str, tuple[Any, Any]] = {}  # by feature: its field, and the box beside it
        self._shown: tuple[int, tuple[str, ...]] | None = None
        self._column = ui.column().classes("w-full")

    def show(self, card: Card) -> None:
        """Make empty fields for a card; if it is the same card as before, keep what was typed."""
        self._column.set_visibility(bool(card.wanted))
        shown = (card.number, card.wanted)
        if shown == self._shown:
            return
        self._shown = shown
        self._column.clear()
        self._fields = {}
        if not card.wanted:
            return
        with self._column:
            for place, name in enumerate(card.wanted):
                self._make(name, card.attributes.get(name), first=place == 0)
            with ui.row().classes("w-full"):
                ui.button("Send (Enter)", on_click=lambda: self._send(False)).props("no-caps")
                ui.button("Answer without the rest", on_click=lambda: self._send(True)).props(
                    "no-caps outline"
                )

    def _make(self, name: str, declared: Attribute | None, *, first: bool) -> None:
        title = f"{name} ({self._units[name]})" if name in self._units else name
        with ui.row().classes("items-center w-full"):
            if declared is not None and declared.values and not declared.open:
                value: Any = ui.select(list(declared.values), label=title, with_input=True)
            else:
                value = ui.input(title)
            value.props["aria-label"] = title
            value.props["maxlength"] = TEXT_MAX
            value.props["autofocus"] = first
            value.on("keydown.enter", lambda: self._send(False))
            missing = ui.checkbox(NOT_TO_BE_HAD)
            missing.props["aria-label"] = f"{title} is {NOT_TO_BE_HAD}"
        self._fields[name] = (value, missing)

    def given(self, card: Card, finish: bool) -> Given:
        """Return the values of filled fields, and the features that are ticked as unavailable."""
        features: dict[str, float | str] = {}
        unavailable: dict[str, str | None] = {}
        for name, (field, missing) in self._fields.items():
            text = (field.value or "").strip()
            if missing.value:
                unavailable[name] = None
            elif text:
                features[name] = value_of(text, card.attributes.get(name))
        return Given(features, unavailable, finish)


def value_of(text: str, declared: Attribute | None) -> float | str:
    """Return the value that a text stands for: a number if the text is one and the declaration allows it.

    >>> value_of("1e3", None), value_of("red", None), value_of("12", Attribute("k", "x", "nominal"))
    (1000.0, 'red', '12')
    """
    if declared is not None and declared.kind == "nominal":
        return text
    try:
        return float(text)
    except ValueError:
        return text
