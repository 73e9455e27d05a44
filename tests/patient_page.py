"""Scripts in a page that may load itself anew, as it does when its server was silent for seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def patiently(page: Any, look: Callable[[Any], T]) -> T:
    """Return the result of a look at a page, which is repeated if the page loads itself anew meanwhile."""
    from playwright.sync_api import Error

    while True:
        try:
            return look(page)
        except Error as error:
            if "because of a navigation" not in str(error):
                raise
            page.wait_for_load_state()


def is_too_wide(page: Any) -> bool:
    """Whether a page is wider than its window."""
    return bool(
        patiently(page, lambda page: page.evaluate("document.documentElement.scrollWidth > innerWidth"))
    )
