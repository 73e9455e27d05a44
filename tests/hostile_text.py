"""Hostile text: scripts and elements for a page that takes text for more than text, and whether it did.

One text holds every trick, so that each place of a page that shows records gets all of them.
"""

from __future__ import annotations

from typing import Any, Final

TRICKS: Final = (
    "<img data-hit src=x onerror='window.__hit=1'>",
    '"><svg data-hit onload="window.__hit=2"></svg>',
    "</script></style></textarea><script data-hit>window.__hit=3</script>",
    "`${window.__hit=4}`",
    "{{constructor.constructor('window.__hit=5')()}}",
    "' onfocus='window.__hit=6' autofocus data-hit='",
    "javascript:window.__hit=7//",
    "&lt;img data-hit src=x onerror=window.__hit=8&gt;",
    "{a|b}{b} :x=window.__hit=9 v-html=",
)
HOSTILE: Final = " ".join(TRICKS)
START: Final = TRICKS[0][:20]
"""How the text begins: a page that shows it whole or cut shows this."""


def text(place: str, most: int = 1024) -> str:
    """Return hostile text that names its place at its beginning, of at most so many characters."""
    return f"{place} {HOSTILE}"[:most]


def look(page: Any, address: str, sent: list[str]) -> list[str]:
    """Return what a page did with hostile text beside showing it.

    sent: where its requests went, filled by the caller; anything but the page's own address is a hit.
    """
    problems = []
    hit = page.evaluate("String(window.__hit)")
    if hit != "undefined":
        problems.append(f"{page.url[:80]}: trick {hit} ran")
    made = page.evaluate("[...document.querySelectorAll('[data-hit]')].map(e => e.outerHTML.slice(0, 200))")
    problems += [f"{page.url[:80]}: {text}" for text in made]
    foreign = [
        url for url in sent if not url.startswith((address, "data:", "blob:", address.replace("http", "ws")))
    ]
    problems += [f"{page.url[:80]}: asked {url[:80]}" for url in foreign]
    names = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
        ".filter(n => n.startsWith('on') || n.startsWith('v-'))"
    )
    problems += [f"{page.url[:80]}: attribute {name}" for name in names]
    links = page.evaluate("[...document.querySelectorAll('a')].map(e => e.href)")
    problems += [f"{page.url[:80]}: link {link[:80]}" for link in links if link.startswith("javascript:")]
    return problems


def hover_charts(page: Any) -> None:
    """Move over the charts of a page, so that their tooltips are drawn."""
    for chart in page.locator(".nicegui-echart:visible").all():
        box = chart.bounding_box()
        if box is None:
            continue
        chart.scroll_into_view_if_needed()
        for part in (0.2, 0.5, 0.8):
            chart.hover(position={"x": box["width"] * part, "y": box["height"] / 2}, force=True)
