"""Frame: what all pages share: navigation, the user's name, colours, and the place of a page's content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from nicegui import ui

from streamapp.web.users import OPERATOR, Role

PAGES: Final = (
    ("/", "Start"),
    ("/label", "Label"),
    ("/sure", "Confirm several"),
    ("/models", "Models"),
    ("/dead-letters", "Dead letters"),
    ("/partitions", "Partitions"),
    ("/experiments", "Experiments"),
)
"""Address and name of each page in the navigation at the top."""
OF_ANNOTATORS: Final = ("/", "/label", "/sure")
"""Pages that annotators may see; the rest need an operator."""
PRIMARY: Final = "#0b57d0"  # 6.4 : 1 on white; NiceGUI's own blue has 3 : 1
_STYLE: Final = """
body { background: #fff; color: #111; }
.grove-page { width: 100%; max-width: 46rem; margin: 0 auto; padding: .5rem; }
.grove-page.grove-wide { max-width: 80rem; }
.grove-page .q-btn { min-height: 44px; }
.grove-text { overflow-wrap: anywhere; }
.grove-table { border-collapse: collapse; width: 100%; font-size: 1rem; }
.grove-table th, .grove-table td {
  border: 1px solid #767676; padding: .3rem .5rem; text-align: left; overflow-wrap: anywhere;
}
.grove-table th:first-child { min-width: 6rem; }
.grove-table caption { caption-side: bottom; text-align: left; padding: .3rem 0; }
.grove-page .q-table td, .grove-page .q-table th {
  font-size: 1rem; overflow-wrap: anywhere; white-space: normal;
}
.grove-nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: center; width: 100%; }
.grove-nav a { color: #0b57d0; padding: .6rem 0; min-height: 44px; box-sizing: border-box; }
.grove-nav a[aria-current=page] { color: #111; font-weight: bold; text-decoration: none; }
.grove-nav .grove-who { margin-left: auto; }
.grove-grid {
  display: grid; gap: 1rem; width: 100%;
  grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr));
}
.grove-tile { border: 1px solid #767676; border-radius: 4px; padding: .75rem 1rem; }
.grove-action {
  display: inline-block; margin-top: .5rem; padding: .7rem 1.2rem; border-radius: 4px; text-decoration: none;
}
.grove-page a.grove-action { background: #0b57d0; color: #fff; }
.grove-table th.grove-number, .grove-table td.grove-number {
  text-align: right; font-variant-numeric: tabular-nums;
}
:focus-visible { outline: 3px solid #0b57d0 !important; outline-offset: 2px; }
"""


@dataclass(frozen=True, slots=True)
class Person:
    """The user of a page, with their role; `signed_in` is False once their session has ended."""

    annotator: str
    signed_in: Callable[[], bool] = lambda: True
    role: Role = OPERATOR


@contextmanager
def frame(active: str, person: Person, *, has_users: bool = False, wide: bool = False) -> Iterator[None]:
    """Draw the frame of a page; the page's own elements go into the body of the `with`.

    active: address of the page in PAGES. wide: the page has drawings and uses the width of a large screen.
    """
    ui.colors(primary=PRIMARY)
    ui.add_css(_STYLE)
    with ui.element("nav").classes("grove-nav grove-page grove-wide").props('aria-label="Pages"'):
        for address, name in PAGES:
            if person.role != OPERATOR and address not in OF_ANNOTATORS:
                continue
            link = ui.link(name, address)
            if address == active:
                link.props("aria-current=page")
        ui.label(person.annotator).classes("grove-who")
        if has_users:
            ui.html('<form method="post" action="/sign-out"><button>Sign out</button></form>', sanitize=False)
    with ui.element("main").classes("grove-page grove-wide" if wide else "grove-page"):
        yield
