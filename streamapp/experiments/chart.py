"""Line charts as SVG, drawn here: axes, lines, marks and a legend are all that the papers' figures have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 640
HEIGHT: Final = 420
LEFT: Final = 70
RIGHT: Final = 150
TOP: Final = 36
BOTTOM: Final = 52
TICKS: Final = 6

# Okabe and Ito's colours, told apart with any sort of colour vision.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES: Final = ("", "6 3", "2 2", "8 3 2 3")


@dataclass(frozen=True, slots=True)
class Line:
    """A series of points."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its text, and whether equal steps are equal ratios."""

    label: str
    log: bool = False

    def place(self, value: float) -> float:
        """Return where on a plain scale a value stands."""
        return math.log2(value) if self.log else value


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over one pair of axes."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]

    def to_svg(self) -> str:
        """Return the chart as an SVG document."""
        drawn = [line for line in self.lines if line.points]
        across = _Scale(self.x, [x for line in drawn for x, _ in line.points], LEFT, WIDTH - RIGHT)
        upward = _Scale(self.y, [y for line in drawn for _, y in line.points], HEIGHT - BOTTOM, TOP)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
            f' viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">{escape(self.title)}</text>',
            *_x_axis(across, self.x.label),
            *_y_axis(upward, self.y.label),
        ]
        for number, line in enumerate(drawn):
            parts.extend(_line(line, number, across, upward))
        return "\n".join([*parts, "</svg>"]) + "\n"


class _Scale:
    """From values to pixels."""

    def __init__(self, axis: Axis, values: list[float], start: float, end: float) -> None:
        self.axis, self.start, self.end = axis, start, end
        placed = [axis.place(value) for value in values] or [0.0, 1.0]
        low, high = min(placed), max(placed)
        if low == high:
            low, high = low - 0.5, high + 0.5
        self.ticks = _ticks(low, high, whole=axis.log)
        self.low, self.high = min(low, self.ticks[0]), max(high, self.ticks[-1])

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.pixel(self.axis.place(value))

    def pixel(self, placed: float) -> float:
        """Return the pixel of a place on the plain scale."""
        return self.start + (placed - self.low) / (self.high - self.low) * (self.end - self.start)

    def text(self, placed: float) -> str:
        """Return what stands at a tick."""
        return f"{2.0**placed:,.6g}" if self.axis.log else f"{placed:,.6g}"


def _ticks(low: float, high: float, *, whole: bool) -> list[float]:
    """Return round numbers over a range."""
    raw = (high - low) / TICKS
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= raw)
    step = max(1.0, round(step)) if whole else step
    first = math.floor(low / step)
    return [round(i * step, 12) for i in range(first, math.ceil(high / step) + 1)]


def _x_axis(scale: _Scale, label: str) -> Iterator[str]:
    bottom = HEIGHT - BOTTOM
    for tick in scale.ticks:
        x = scale.pixel(tick)
        yield f'<path d="M{x:.1f} {TOP} V{bottom + 4}" stroke="#e5e5e5"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{scale.text(tick)}</text>'
    yield f'<path d="M{LEFT} {bottom} H{WIDTH - RIGHT}" stroke="black"/>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle:g}" y="{HEIGHT - 14}" text-anchor="middle">{escape(label)}</text>'


def _y_axis(scale: _Scale, label: str) -> Iterator[str]:
    for tick in scale.ticks:
        y = scale.pixel(tick)
        yield f'<path d="M{LEFT - 4} {y:.1f} H{WIDTH - RIGHT}" stroke="#e5e5e5"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{scale.text(tick)}</text>'
    yield f'<path d="M{LEFT} {TOP} V{HEIGHT - BOTTOM}" stroke="black"/>'
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield (
        f'<text x="16" y="{middle:g}" text-anchor="middle"'
        f' transform="rotate(-90 16 {middle:g})">{escape(label)}</text>'
    )


def _line(line: Line, number: int, across: _Scale, upward: _Scale) -> Iterator[str]:
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
    points = " ".join(f"{across.at(x):.1f},{upward.at(y):.1f}" for x, y in line.points)
    style = f'stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"'
    yield f'<polyline points="{points}" fill="none" {style}/>'
    if len(line.points) <= 12:
        for x, y in line.points:
            yield f'<circle cx="{across.at(x):.1f}" cy="{upward.at(y):.1f}" r="3" fill="{colour}"/>'
    y = TOP + 8 + 20 * number
    left = WIDTH - RIGHT + 12
    yield f'<path d="M{left} {y} h22" {style}/>'
    yield f'<text x="{left + 28}" y="{y + 4}">{escape(line.name)}</text>'
