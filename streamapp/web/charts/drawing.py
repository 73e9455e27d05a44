"""Drawing: lines with bands and marks, as options of ECharts, as rows of a table and as text by value.

Colours are variables of the style sheet, so that a drawing follows light and dark; the SVG renderer of
ECharts leaves them to the browser. Lines differ by dash and symbol too. Names from records are text: no
tooltip is HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from streamapp.web.charts.axis import Axis, axis
from streamapp.web.formatting import number

SYMBOLS: Final = ("circle", "rect", "triangle", "diamond", "arrow", "roundRect", "pin", "emptyCircle")
DASHES: Final[tuple[str | list[int], ...]] = (
    "solid",
    [8, 4],
    [2, 3],
    [10, 3, 2, 3],
    [14, 4],
    [5, 2],
    [2, 6],
    [14, 3, 2, 3, 2, 3],
)
LINES_MAX: Final = len(SYMBOLS)
"""Lines that have a mark of their own; a drawing has no more."""
SYMBOLS_A_LINE: Final = 10
MARKS_MAX: Final = 6
"""Marks are merged so that an axis has at most about this number, and their labels do not overlap."""
X_PARTS: Final = 6
HOVER: Final = " "
"""Name of the series without a line, which holds the text of each place of the axis."""
TEXT: Final = "var(--grove-text)"
GRID: Final = "var(--grove-line)"
PAPER: Final = "var(--grove-surface)"
ALARM: Final = "var(--grove-bad)"
TOOLTIP: Final[dict[str, Any]] = {
    "renderMode": "richText",
    "confine": True,
    "backgroundColor": PAPER,
    "borderColor": TEXT,
    "textStyle": {"color": TEXT, "fontSize": 12},
}
_HOVER_TEXT: Final = (
    "(items) => ((Array.isArray(items) ? items : [items]).find(i => i.data && i.data.text) "
    "|| {data: {text: ''}}).data.text"
)


@dataclass(frozen=True, slots=True)
class Point:
    """A value of a line; None: not known there. low, high: the ends of its band."""

    x: float
    y: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a drawing."""

    name: str
    points: Sequence[Point]
    band: str = ""
    """Name of the band around it, "95 % interval"; "": it has none."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place of the horizontal axis with a label: a drift, a reset."""

    x: float
    text: str
    address: str = ""
    """Page that a click opens; "": none."""
    is_alarm: bool = True


class Link(NamedTuple):
    """A page that belongs to a place of a chart."""

    text: str
    address: str
    series: str = ""
    """Name of the series whose points open it; "": a mark does."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart in all its forms: drawn, in words at each place, and as a table."""

    options: dict[str, Any]
    readouts: list[str]
    """Values of all lines at each place of the horizontal axis, in its order."""
    head: list[str]
    rows: list[list[str]]
    places: list[tuple[int, int]]
    """By readout, the numbers of the series and of the value whose tooltip shows it."""
    links: list[Link] = field(default_factory=list)
    """Pages of the marks, in the order of the marks."""
    addresses: dict[tuple[int, int], str] = field(default_factory=dict)
    """Pages of single values, by the numbers of series and value."""

    @property
    def is_empty(self) -> bool:
        """Return whether the drawing has no value."""
        return not self.rows


@dataclass(frozen=True, slots=True)
class Names:
    """Names and units of the axes."""

    x: str
    y: str
    unit: str = ""
    """Unit of the values; "" for counts."""


def colour(at: int) -> str:
    """Return the colour of the line or class with a number.

    >>> colour(0), colour(8)
    ('var(--grove-series-1)', 'var(--grove-series-1)')
    """
    return f"var(--grove-series-{1 + at % LINES_MAX})"


def line_chart(
    names: Names,
    lines: Sequence[Line],
    marks: Sequence[Mark] = (),
    *,
    y_axis: Callable[[Sequence[float]], Axis] = axis,
) -> Drawing:
    """Return lines over a horizontal axis of numbers, with at most LINES_MAX lines.

    y_axis: makes the vertical axis for the values.
    """
    lines = [line for line in lines if any(point.y is not None for point in line.points)][:LINES_MAX]
    values = [
        value
        for line in lines
        for point in line.points
        for value in (point.y, point.low, point.high)
        if value is not None
    ]
    xs = sorted({point.x for line in lines for point in line.points})
    vertical, horizontal = y_axis(values), axis(xs, floor=0.0, parts=X_PARTS)
    inside = [mark for mark in marks if horizontal.low <= mark.x <= horizontal.high] if xs else []
    merged = merged_marks(inside, horizontal.high - horizontal.low)
    at_x = [{point.x: point for point in line.points} for line in lines]
    rows = [[number(x), *(_in_words(points.get(x), names.unit) for points in at_x)] for x in xs]
    readouts = [
        "\n".join(
            [f"{names.x} {row[0]}"]
            + [f"{line.name}: {text}" for line, text in zip(lines, row[1:], strict=True) if text]
        )
        for row in rows
    ]
    series = [_hover(xs, readouts, vertical.low)]
    for at, line in enumerate(lines):
        series += _series(line, at)
    series[0]["markLine"] = _mark_lines(merged)
    options = {
        "animation": False,
        "tooltip": {**TOOLTIP, "trigger": "axis", ":formatter": _HOVER_TEXT},
        "legend": _legend([line.name for line in lines]),
        "grid": {"left": 8, "right": 24, "top": 72, "bottom": 34, "containLabel": True},
        "xAxis": {
            **_axis(names.x),
            "min": horizontal.low,
            "max": horizontal.high,
            "interval": horizontal.step,
        }
        | {"nameLocation": "middle", "nameGap": 26, "splitLine": {"show": False}},
        "yAxis": _axis(names.y)
        | {"min": vertical.low, "max": vertical.high, "interval": vertical.step}
        | {"axisLabel": {"color": TEXT, "formatter": f"{{value}} {names.unit}".strip()}},
        "series": series,
    }
    head = [names.x, *(_titled(line, names.unit) for line in lines)]
    links = [Link(f"{mark.text} at {number(mark.x)} {names.x}", mark.address) for mark in merged]
    return Drawing(options, readouts, head, rows, [(0, at) for at in range(len(xs))], links)


def _titled(line: Line, unit: str) -> str:
    parts = ", ".join(part for part in (unit, line.band) if part)
    return f"{line.name} ({parts})" if parts else line.name


def _in_words(point: Point | None, unit: str) -> str:
    if point is None or point.y is None:
        return ""
    text = _written(point.y, unit)
    if point.low is None or point.high is None:
        return text
    if unit:
        return f"{text} ({point.low:.1f} to {point.high:.1f})"
    return f"{text} ({_written(point.low, '')} to {_written(point.high, '')})"


def _written(value: float, unit: str) -> str:
    """Return a value of a line; a share has one decimal.

    >>> _written(12345.0, ""), _written(71.0, "%"), _written(71.26, "")
    ('12,345', '71.0 %', '71.3')
    """
    if unit:
        return f"{value:.1f} {unit}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def merged_marks(marks: Sequence[Mark], span: float) -> list[Mark]:
    """Return marks in order; those nearer than their labels are wide are one mark, with their number.

    >>> [mark.text for mark in merged_marks([Mark(1, "drift"), Mark(2, "drift"), Mark(90, "reset")], 100)]
    ['2 drifts', 'reset']
    """
    groups: list[list[Mark]] = []
    for mark in sorted(marks, key=lambda mark: mark.x):
        if groups and mark.x - groups[-1][0].x < span / MARKS_MAX:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return [group[0] if len(group) == 1 else _merged(group) for group in groups]


def _merged(group: Sequence[Mark]) -> Mark:
    texts = list(dict.fromkeys(mark.text for mark in group))
    text = f"{len(group)} {texts[0]}s" if len(texts) == 1 else f"{len(group)} events"
    return Mark(group[0].x, text, group[-1].address, any(mark.is_alarm for mark in group))


def _hover(xs: Sequence[float], readouts: Sequence[str], y: float) -> dict[str, Any]:
    return {
        "name": HOVER,
        "type": "line",
        "symbol": "none",
        "lineStyle": {"opacity": 0},
        "data": [{"value": [x, y], "text": text} for x, text in zip(xs, readouts, strict=True)],
    }


def _series(line: Line, at: int) -> list[dict[str, Any]]:
    """Return the line, its symbols and its band; all have one name, so that the legend has one item."""
    paint = colour(at)
    common: dict[str, Any] = {"name": line.name, "silent": True, "emphasis": {"disabled": True}}
    data = [[point.x, rounded(point.y)] for point in line.points]
    pairs = [pair for pair in data if pair[1] is not None]
    every = max(1, len(pairs) // SYMBOLS_A_LINE)
    # Lines that run together have their symbols at different places.
    first = (at * every // 3) % every if every > 2 else 0
    series = [
        common
        | {"type": "line", "symbol": SYMBOLS[at], "symbolSize": 8, "showSymbol": False, "data": data}
        | {"lineStyle": {"color": paint, "type": DASHES[at], "width": 2}, "itemStyle": {"color": paint}},
        common
        | {"type": "scatter", "symbol": SYMBOLS[at], "symbolSize": 8, "itemStyle": {"color": paint}}
        | {"data": pairs[first::every]},
    ]
    with_band = [point for point in line.points if point.low is not None and point.high is not None]
    if line.band and with_band:
        bare = common | {"type": "line", "symbol": "none", "stack": f"band {at}", "lineStyle": {"opacity": 0}}
        widths = [[point.x, rounded(_width(point))] for point in with_band]
        series += [
            bare | {"data": [[point.x, rounded(point.low)] for point in with_band]},
            bare | {"data": widths, "areaStyle": {"color": paint, "opacity": 0.18}},
        ]
    return series


def _width(point: Point) -> float:
    assert point.low is not None
    assert point.high is not None
    return point.high - point.low


def _mark_lines(marks: Sequence[Mark]) -> dict[str, Any]:
    return {
        "symbol": ["none", "none"],
        "emphasis": {"disabled": True},
        "data": [
            {
                "xAxis": mark.x,
                "name": mark.text,
                "label": {"formatter": template_free(mark.text), "color": TEXT, "fontSize": 11},
                "lineStyle": {"color": ALARM if mark.is_alarm else TEXT, "type": [4, 3], "width": 1.5},
            }
            for mark in marks
        ],
    }


def _legend(names: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "scroll",
        "top": 0,
        "left": 0,
        "data": list(names),
        "itemWidth": 36,
        "textStyle": {"color": TEXT, "fontSize": 12},
        "inactiveColor": GRID,
        "pageTextStyle": {"color": TEXT},
        "pageIconColor": TEXT,
    }


def _axis(name: str) -> dict[str, Any]:
    return {
        "type": "value",
        "name": name,
        "nameTextStyle": {"color": TEXT, "align": "left"},
        "axisLabel": {"color": TEXT, "hideOverlap": True},
        "axisLine": {"lineStyle": {"color": TEXT}},
        "splitLine": {"lineStyle": {"color": GRID}},
    }


def template_free(text: str) -> str:
    """Return a text without braces, which ECharts reads as templates.

    >>> template_free("{b}")
    '(b)'
    """
    return text.replace("{", "(").replace("}", ")")


def rounded(value: float | None) -> float | None:
    """Return a value with the digits that a drawing shows."""
    return None if value is None else round(value, 4)
