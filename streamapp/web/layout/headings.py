"""Headings of pages and of their sections, with a hint beside them."""

from __future__ import annotations

from nicegui import ui

from streamapp.web.layout.hints import hint


def heading(text: str, level: int = 1, *, explained: str = "") -> ui.label:
    """Draw a heading; explained: key of the word whose hint is beside it."""
    if explained:
        with ui.element("div").classes("grove-headed"):
            label = heading(text, level)
            hint(explained)
        return label
    size = {1: "text-h5", 2: "text-h6"}[level]
    return (
        ui.label(text).classes(f"{size} grove-heading grove-text").props(f"role=heading aria-level={level}")
    )
