"""Data table: rows that people sort by any column and filter by a text; numbers are at the right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from nicegui import ui

from streamapp.web.formatting import number
from streamapp.web.layout.hints import hint_text, next_number
from streamapp.web.layout.times import exact, relative

PER_PAGE: Final = 25
FILTERED_FROM: Final = 8
"""A table with fewer rows is read at a glance, and has no filter."""
_SORT: Final = """(a, b, x, y) => {{
  const [p, q] = [x["{name}_sort"], y["{name}_sort"]];
  if (p === q) return 0;
  if (p === null || p === undefined) return 1;
  if (q === null || q === undefined) return -1;
  return p < q ? -1 : 1;
}}"""
# The button is for people without a mouse; its click goes on to the cell, which sorts.
SORTED_HEAD: Final = """<q-th :props="props" :aria-sort="!props.col.sortable ? null
  : !props.col.__thClass.includes('sorted') ? 'none'
  : props.col.__thClass.includes('sort-desc') ? 'descending' : 'ascending'">
  <button v-if="props.col.sortable" type="button" class="grove-sort">{{ props.col.label }}</button>
  <template v-else>{{ props.col.label }}</template>
  <button v-if="props.col.hint" type="button" class="grove-hint" :popovertarget="props.col.hint"
    :aria-label="'Meaning of ' + props.col.label" @click.stop>?</button>
</q-th>"""
# Vue escapes all texts. `_svg` comes from this program alone: it has numbers, and no text of a record.
_BODY: Final = """<q-td :props="props" :class="props.col.short ? 'grove-short' : ''">
  <a v-if="props.row[props.col.name + '_link']" :href="props.row[props.col.name + '_link']">{{
    props.value }}</a>
  <span v-else-if="props.row[props.col.name + '_svg']" v-html="props.row[props.col.name + '_svg']"></span>
  <span v-else :title="props.row[props.col.name + '_title'] || null">{{ props.value }}</span>
</q-td>"""


class Column(NamedTuple):
    """A column of a table."""

    label: str
    numeric: bool = False  # at the right, on one line
    explained: str = ""  # key of the word whose hint is beside the label
    sortable: bool = True
    short: bool = False  # its texts stay on one line


class Cell(NamedTuple):
    """A cell: its text, the value by which it is sorted, and what the text leads to or shows."""

    text: str
    sort: str | float | None = None  # None: after all values
    link: str = ""  # address
    title: str = ""  # shown for the pointer
    svg: str = ""  # a picture in the place of the text, made by this program


def text_cell(text: str, *, title: str = "") -> Cell:
    """Return a cell that is sorted by its text, without regard to case."""
    return Cell(text, text.casefold(), title=title)


def link_cell(text: str, address: str) -> Cell:
    """Return a cell that leads to another page."""
    return Cell(text, text.casefold(), link=address)


def number_cell(value: object, unit: str = "") -> Cell:
    """Return a cell with a number and its unit.

    >>> number_cell(1234, "bytes")
    Cell(text='1,234 bytes', sort=1234.0, link='', title='', svg='')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell("–")
    return Cell(f"{number(value)} {unit}".strip(), float(value))


def time_cell(time_ms: int | None, now: int, none: str = "none") -> Cell:
    """Return a cell with a relative time, whose exact time the pointer shows; none: text without a time."""
    if time_ms is None:
        return Cell(none)
    return Cell(relative(time_ms, now), float(time_ms), title=exact(time_ms))


Row = Mapping[str, Cell]
Turn = Callable[[], Awaitable[None]]


class DataTable:
    """A table, its filter above it, and the text that stands in its place while it has no row.

    With `turned`, the rows of one page are given by `show` each time that a person turns, sorts or filters;
    `filter_text`, `sort_by`, `descending` and `first` hold the choice. Without it, the table has all rows.
    """

    def __init__(
        self,
        label: str,
        columns: Mapping[str, Column],
        *,
        key: str,
        empty: str,
        filtered: str = "Filter",
        sort_by: str | None = None,
        descending: bool = False,
        turned: Turn | None = None,
        per_page: int = PER_PAGE,
    ) -> None:
        """label: of the table, for people who do not see it. key: column that tells rows apart."""
        self._columns, self._key, self._empty, self._turned = columns, key, empty, turned
        self._per_page = per_page
        self._shown: list[dict[str, Any]] = []
        with ui.element("div").classes("grove-table-block"):
            self._draw(label, filtered, sort_by, descending=descending)
        self._place.set_visibility(False)
        self._filter.set_visibility(False)

    def _draw(self, label: str, filtered: str, sort_by: str | None, *, descending: bool) -> None:
        turned, per_page, columns = self._turned, self._per_page, self._columns
        self._filter = ui.input(filtered, on_change=self._filter_changed if turned else None)
        self._filter.props("dense outlined clearable debounce=300 maxlength=200 type=search")
        self._filter.classes("grove-filter")
        hints = {name: next_number() for name, column in columns.items() if column.explained}
        with ui.element("div").classes("grove-hint-texts"):
            for name, hint_number in hints.items():
                ui.html(hint_text(columns[name].explained, hint_number), sanitize=False)
        self._nothing = ui.label(self._empty).classes("grove-empty")
        # People without a mouse scroll a table that is too wide with the arrow keys.
        with ui.element("div").classes("grove-scroll").props("tabindex=0 role=region") as self._place:
            self._place.props["aria-label"] = label
            pagination: dict[str, Any] = {"rowsPerPage": per_page, "descending": descending}
            if sort_by is not None:
                pagination["sortBy"] = sort_by
            if turned is not None:
                pagination |= {"rowsNumber": 0, "page": 1}
            self.table = ui.table(
                rows=[],
                columns=[self._quasar_column(name, hints) for name in columns],
                row_key="_key",
                pagination=pagination,
            )
        self.table.props("flat dense wrap-cells binary-state-sort")
        self.table.props("rows-per-page-label='Rows per page'")
        self.table.props("no-results-label='No row has this text.' no-data-label='No row.'")
        self.table.props[":rows-per-page-options"] = str([per_page] if turned else [25, 50, 100, 0])
        self.table.classes("w-full grove-data")
        self.table.add_slot("header-cell", SORTED_HEAD)
        self.table.add_slot("body-cell", _BODY)
        if turned is None:
            self._filter.bind_value_to(self.table, "filter", lambda text: text or "")
        else:
            self.table.on("request", self._requested)

    def _quasar_column(self, name: str, hints: Mapping[str, int]) -> dict[str, Any]:
        column = self._columns[name]
        quasar: dict[str, Any] = {
            "name": name,
            "label": column.label,
            "field": name,
            "align": "right" if column.numeric else "left",
            "sortable": column.sortable,
            "short": column.short or column.numeric,
            "hint": f"hint-{hints[name]}" if name in hints else "",
        }
        if self._turned is None:
            quasar[":sort"] = _SORT.format(name=name)
        return quasar

    def slot(self, name: str, template: str) -> None:
        """Draw the cells of a column by a Vue template, for buttons."""
        self.table.add_slot(f"body-cell-{name}", template)

    # -- the choice of a person, if rows come page by page -------------------------------------------------

    @property
    def filter_text(self) -> str:
        """Return the text that rows must contain."""
        return str(self._filter.value or "")

    @property
    def sort_by(self) -> str:
        """Return the name of the column by which rows are sorted."""
        return str(self.table.pagination.get("sortBy") or self._key)

    @property
    def descending(self) -> bool:
        """Return whether the largest value comes first."""
        return bool(self.table.pagination.get("descending"))

    @property
    def first(self) -> int:
        """Return the number of rows before the page."""
        return (int(self.table.pagination.get("page", 1)) - 1) * self._per_page

    async def turn_to(self, page: int) -> None:
        """Show another page, beginning with 1."""
        self.table.pagination = {**self.table.pagination, "page": page}
        await self._turn()

    async def filter_by(self, text: str) -> None:
        """Show only rows with a text."""
        self._filter.set_value(text)

    async def _filter_changed(self) -> None:
        await self.turn_to(1)

    async def _requested(self, event: Any) -> None:
        pagination = event.args["pagination"]
        is_column = pagination.get("sortBy") in self._columns
        self.table.pagination = {
            **self.table.pagination,
            "page": max(1, int(pagination.get("page") or 1)),
            "sortBy": pagination["sortBy"] if is_column else None,
            "descending": bool(pagination.get("descending")),
        }
        await self._turn()

    async def _turn(self) -> None:
        if self._turned is not None:
            await self._turned()

    # -- rows ---------------------------------------------------------------------------------------------

    def show(self, rows: Sequence[Row], total: int | None = None) -> None:
        """Show rows; total: of all pages, if rows come page by page. Equal rows are not sent again."""
        flat = [_flat(row, self._key) for row in rows]
        count = len(flat) if total is None else total
        is_filtered = bool(self.filter_text)
        self._nothing.set_text("No row has this text." if is_filtered and self._turned else self._empty)
        self._nothing.set_visibility(not flat)
        self._place.set_visibility(bool(flat))
        self._filter.set_visibility(count >= FILTERED_FROM or is_filtered or self._turned is not None)
        if self._turned is not None and self.table.pagination.get("rowsNumber") != count:
            self.table.pagination = {**self.table.pagination, "rowsNumber": count}
        if count <= self._per_page:
            self.table.props(add="hide-pagination")
        else:
            self.table.props(remove="hide-pagination")
        if flat != self._shown:
            self._shown = flat
            self.table.rows = [dict(row) for row in flat]


def _flat(row: Row, key: str) -> dict[str, Any]:
    """Return a row as Quasar has it: text, value to sort by, link, title and picture of each cell."""
    flat: dict[str, Any] = {"_key": row[key].link or row[key].text}
    for name, cell in row.items():
        flat[name], flat[f"{name}_sort"] = cell.text, cell.sort
        for part, value in (("link", cell.link), ("title", cell.title), ("svg", cell.svg)):
            if value:
                flat[f"{name}_{part}"] = value
    return flat
