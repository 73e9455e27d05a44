"""Chart view: a chart in a page, with its values by keyboard, as a table, and with links at its marks."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, Final

from nicegui import ui

from streamapp.web.charts.drawing import Drawing

ROWS_MAX: Final = 400
_KEYS: Final = """(event) => {
  const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9};
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key !== 'Enter' && !(event.key in steps)) return;
  event.preventDefault();
  emit(event.key === 'Enter' ? null : steps[event.key]);
}"""
EMPTY: Final = "Nothing to draw yet."


class ChartView:
    """The elements of a chart in one browser."""

    def __init__(self, title: str, *, low: bool = False, empty: str = EMPTY) -> None:
        """title: name of the chart for people who do not see it. empty: text for a chart without values."""
        self._drawing: Drawing | None = None
        self._at = -1
        self._empty = empty
        self._nothing = ui.label(empty).classes("grove-muted")
        self._whole = ui.element("div").classes("grove-figure")
        with self._whole:
            keys = f"{title}. Left and right arrow keys go through the values."
            self._box = ui.element("div").props(f'tabindex=0 role=group aria-label="{html.escape(keys)}"')
            with self._box.classes("grove-keys"):
                self._chart = ui.echart({}, renderer="svg").classes("grove-low" if low else "grove-chart")
                self._chart.props(f'role=img aria-label="{html.escape(title)}; the table has its values"')
            self._readout = ui.label().classes("grove-readout").props("role=status")
            self._links = ui.row().classes("grove-marks")
            with ui.element("details").classes("grove-details") as details:
                with ui.element("summary"):
                    ui.label("Values as a table")
                self._table = ui.html(sanitize=False)
        self._is_open = False
        self._box.on("keydown", self._step, js_handler=_KEYS)
        self._box.on("blur", self._leave)
        details.on("toggle", self._toggle, js_handler="(event) => emit(event.target.open)")
        self._chart.on(
            "componentClick", self._click, ["componentType", "dataIndex", "seriesIndex", "seriesName"]
        )
        self._whole.set_visibility(False)

    def show(self, drawing: Drawing) -> None:
        """Show a drawing; the place in it that a person looks at stays."""
        if self._drawing == drawing:
            return
        self._drawing = drawing
        self._nothing.set_visibility(drawing.is_empty)
        self._whole.set_visibility(not drawing.is_empty)
        self._at = min(self._at, len(drawing.readouts) - 1)
        self._chart.options.clear()
        self._chart.options.update(drawing.options)
        self._chart.update()
        self._links.clear()
        with self._links:
            for link in drawing.links:
                if link.address:
                    ui.link(link.text, link.address).classes("grove-mark")
        self._fill()

    def _toggle(self, event: Any) -> None:
        self._is_open = bool(event.args)
        self._fill()

    def _fill(self) -> None:
        """Draw the table, if it is open."""
        if not self._is_open or self._drawing is None:
            self._table.set_content("")
            return
        self._table.set_content(values_table(self._drawing.head, self._drawing.rows))

    def _step(self, event: Any) -> None:
        """Go to another value, or open the page of the value."""
        if self._drawing is None or self._drawing.is_empty:
            return
        if event.args is None:
            if self._at >= 0:
                self._open(self._drawing.addresses.get(self._drawing.places[self._at], ""))
            return
        last = len(self._drawing.readouts) - 1
        self._at = int(max(0, min(last, (last if self._at < 0 else self._at) + int(event.args))))
        self._readout.set_text(", ".join(self._drawing.readouts[self._at].split("\n")))
        series, value = self._drawing.places[self._at]
        tip = {"type": "showTip", "seriesIndex": series, "dataIndex": value}
        self._chart.run_chart_method("dispatchAction", tip)

    def _leave(self) -> None:
        self._chart.run_chart_method("dispatchAction", {"type": "hideTip"})

    def _click(self, event: Any) -> None:
        """Open the page of the clicked mark, value or series."""
        if self._drawing is None:
            return
        part, links = event.args, self._drawing.links
        at = part.get("dataIndex")
        if part.get("componentType") == "markLine":
            self._open(links[at].address if isinstance(at, int) and 0 <= at < len(links) else "")
            return
        named = {link.series: link.address for link in links if link.series}
        page = self._drawing.addresses.get((part.get("seriesIndex"), at))
        self._open(page or named.get(str(part.get("seriesName")), ""))

    def _open(self, address: str) -> None:
        if address:
            ui.navigate.to(address)


def values_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return at most ROWS_MAX rows, the last ones, as an HTML table; its texts are escaped.

    >>> values_table(["labels", "x"], [["1", "<b>"]]).partition("<tbody>")[2].partition("</tbody>")[0]
    '<tr><th scope="row" class="grove-number">1</th><td class="grove-number">&lt;b&gt;</td></tr>'
    """
    top = "".join(f'<th scope="col" class="grove-number">{html.escape(text)}</th>' for text in head)
    body = "".join(
        f'<tr><th scope="row" class="grove-number">{html.escape(row[0])}</th>'
        + "".join(f'<td class="grove-number">{html.escape(text)}</td>' for text in row[1:])
        + "</tr>"
        for row in rows[-ROWS_MAX:]
    )
    n_more = len(rows) - ROWS_MAX
    more = (
        f"<caption>The newest {ROWS_MAX}; {n_more:,} earlier rows are left out.</caption>"
        if n_more > 0
        else ""
    )
    return (
        '<div class="grove-scroll grove-values" tabindex="0" role="region" aria-label="Values">'
        f'<table class="grove-table">{more}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )
