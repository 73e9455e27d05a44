"""Pictures of pages: what every page looks like on a desk and on a phone, and what axe-core finds there.

GROVE_SCREENSHOTS=FOLDER writes the pictures there; docs/screenshots/ has them from `test_web_walks.py`.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from tests.unit.streamapp.web.test_accessibility import flaws

SIZES = {"": {"width": 1300, "height": 900}, "-phone": {"width": 390, "height": 844}}
COLOURS_MAX = 64
BYTES_MAX = 60_000


def picture(page: Any, name: str) -> None:
    """Write a picture of what is in view, with few colours, if pictures are wanted."""
    folder = os.environ.get("GROVE_SCREENSHOTS")
    if folder is None:
        return
    from PIL import Image

    Path(folder).mkdir(parents=True, exist_ok=True)
    with Image.open(io.BytesIO(page.screenshot())) as taken:
        small = taken.convert("RGB").quantize(COLOURS_MAX, dither=Image.Dither.NONE)
    path = Path(folder) / f"web-{name}.png"
    small.save(path, optimize=True)
    assert path.stat().st_size <= BYTES_MAX, path


def look_over(page: Any, name: str) -> list[tuple[str, Any]]:
    """Take a picture of a page; return its flaws: width, rules of accessibility, handlers."""
    picture(page, name)
    found: list[tuple[str, Any]] = [(name, flaw) for flaw in flaws(page)]
    if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
        found.append((name, "is wider than the screen"))
    handlers = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => /^on/.test(n))"
    )
    found += [(name, f"handler {handler}") for handler in handlers]
    return found
