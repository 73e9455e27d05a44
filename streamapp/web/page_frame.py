"""Frame: what all pages share: navigation, the user's name, colours, and the place of a page's content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nicegui import ui

from streamapp.web.layout.navigation import GROUPS, listed_pages
from streamapp.web.layout.theme import ThemeSwitch
from streamapp.web.users import OPERATOR, Role


@dataclass(frozen=True, slots=True)
class Person:
    """The user of a page, with their role; `signed_in` is False once their session has ended."""

    annotator: str
    signed_in: Callable[[], bool] = lambda: True
    role: Role = OPERATOR


@contextmanager
def frame(active: str, person: Person, *, has_users: bool = False, wide: bool = False) -> Iterator[None]:
    """Draw the frame of a page; the page's own elements go into the body of the `with`.

    active: address of the page in the navigation. wide: the page has drawings and uses the width of a large
    screen.
    """
    with ui.element("div").classes("grove-shell"):
        with ui.element("header").classes("grove-side"):
            ui.label("grove").classes("grove-brand")
            _navigation(active, person.role)
            with ui.element("div").classes("grove-account"):
                ui.label(person.annotator).classes("grove-who")
                ThemeSwitch()
                if has_users:
                    ui.html(
                        '<form method="post" action="/sign-out">'
                        '<button class="grove-plain">Sign out</button></form>',
                        sanitize=False,
                    )
        with ui.element("div").classes("grove-page grove-wide" if wide else "grove-page"):
            yield


def _navigation(active: str, role: Role) -> None:
    """Draw a link to each page of a role, by groups."""
    pages = listed_pages(role)
    with ui.element("nav").classes("grove-nav").props('aria-label="Pages"'):
        for group in GROUPS:
            entries = [page for page in pages if page.group == group]
            if not entries:
                continue
            with ui.element("div"):
                ui.label(group).classes("grove-group")
                with ui.element("ul"):
                    for page in entries:
                        with ui.element("li"):
                            link = ui.link(page.name, page.address)
                        if page.address == active:
                            link.props("aria-current=page")
