"""Theme: the style sheet of all pages, and the choice between light and dark that a browser remembers."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

from nicegui import app, ui

from streamapp.web.layout.style_sheet import ASSETS, CACHE_S, FOLDER, STYLE_SHEET

COOKIE: Final = "grove_theme"
Theme = Literal["system", "light", "dark"]
THEMES: Final[dict[Theme, tuple[str, str]]] = {
    "system": ("Colours of the system", "brightness_auto"),
    "light": ("Light colours", "light_mode"),
    "dark": ("Dark colours", "dark_mode"),
}
"""Label and icon of each theme."""
_DARK: Final[dict[Theme, bool | None]] = {"system": None, "light": False, "dark": True}
_SET: Final = """
document.cookie = "{cookie}={theme}; path=/; max-age=31536000; SameSite=Strict";
document.documentElement.dataset.theme = "{theme}";
"""


def serve_assets() -> None:
    """Serve the style sheet."""
    app.add_static_files(ASSETS, FOLDER, max_cache_age=CACHE_S)


def theme_of(cookies: dict[str, str]) -> Theme:
    """Return the theme of a request by its cookies.

    >>> theme_of({"grove_theme": "dark"}), theme_of({"grove_theme": "<b>"}), theme_of({})
    ('dark', 'system', 'system')
    """
    return next((theme for theme in THEMES if theme == cookies.get(COOKIE)), "system")


class ThemeSwitch:
    """The switch between the system's colours, light and dark."""

    def __init__(self) -> None:
        """Apply the theme of the page's request, and draw the switch."""
        theme = theme_of(ui.context.client.request.cookies)
        # In the head: a page is never drawn in other colours first.
        ui.add_head_html(f'<link rel="stylesheet" href="{STYLE_SHEET}">')
        ui.add_head_html(f'<script>document.documentElement.dataset.theme = "{theme}";</script>')
        self._dark = ui.dark_mode(_DARK[theme])
        self._buttons: dict[Theme, ui.button] = {}
        with ui.element("div").props('role=group aria-label="Colours"').classes("grove-theme"):
            for name, (label, icon) in THEMES.items():
                button = ui.button(icon=icon, on_click=partial(self.choose, name), color=None)
                button.props(f'flat dense aria-label="{label}" title="{label}"')
                self._buttons[name] = button
        self._mark(theme)

    def choose(self, theme: Theme) -> None:
        """Draw the page in a theme, and let the browser remember it."""
        self._mark(theme)
        self._dark.set_value(_DARK[theme])
        ui.run_javascript(_SET.format(cookie=COOKIE, theme=theme))

    def _mark(self, theme: Theme) -> None:
        for name, button in self._buttons.items():
            button.props(f"aria-pressed={'true' if name == theme else 'false'}")
