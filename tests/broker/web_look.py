"""A look over a page: its width, what axe-core finds, and handlers that a strict policy would stop."""

from __future__ import annotations

from typing import Any

from tests.patient_page import patiently
from tests.unit.streamapp.web.test_accessibility import flaws


def look_over(page: Any, name: str) -> list[tuple[str, Any]]:
    """Return the flaws of a page."""
    return patiently(page, lambda page: _flaws_of(page, name))


def _flaws_of(page: Any, name: str) -> list[tuple[str, Any]]:
    problems: list[tuple[str, Any]] = [(name, flaw) for flaw in flaws(page)]
    if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
        problems.append((name, "is wider than the screen"))
    handlers = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => /^on/.test(n))"
    )
    return problems + [(name, f"handler {handler}") for handler in handlers]
