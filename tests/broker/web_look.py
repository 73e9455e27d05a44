"""A look over a page: its width, what axe-core finds, and handlers that a strict policy would stop."""

from __future__ import annotations

from typing import Any

from tests.unit.streamapp.web.test_accessibility import flaws


def look_over(page: Any, name: str) -> list[tuple[str, Any]]:
    """Return the flaws of a page; one that loads itself anew meanwhile is looked over again."""
    from playwright.sync_api import Error

    while True:
        try:
            return _flaws_of(page, name)
        except Error as error:
            if "because of a navigation" not in str(error):
                raise
            page.wait_for_load_state()


def _flaws_of(page: Any, name: str) -> list[tuple[str, Any]]:
    problems: list[tuple[str, Any]] = [(name, flaw) for flaw in flaws(page)]
    if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
        problems.append((name, "is wider than the screen"))
    handlers = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => /^on/.test(n))"
    )
    return problems + [(name, f"handler {handler}") for handler in handlers]
