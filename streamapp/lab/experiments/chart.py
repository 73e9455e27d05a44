"""Line charts as SVG, drawn by matplotlib (the extra `experiments`; nothing else needs it)."""

from __future__ import annotations

import io
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

# The colours of Okabe and Ito, which are distinct with any kind of colour vision.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES: Final = ("solid", "dashed", "dotted", "dashdot")
# Equal lines make equal bytes, texts stay texts, and names are not read as formulas.
STYLE: Final = {"svg.hashsalt": "grove", "svg.fonttype": "none", "text.parse_math": False}


@dataclass(frozen=True, slots=True)
class Line:
    """A series of points."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its text, and whether it is logarithmic."""

    label: str
    log: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over one pair of axes."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]

    def to_svg(self) -> str:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.ticker import StrMethodFormatter

        with rc_context(STYLE):
            figure = Figure(figsize=(6.4, 4.2), layout="constrained")
            axes = figure.subplots()
            axes.set(title=self.title, xlabel=self.x.label, ylabel=self.y.label)
            axes.grid(color="#e5e5e5")
            for number, line in enumerate(line for line in self.lines if line.points):
                kind: dict[str, Any] = {
                    "color": COLOURS[number % len(COLOURS)],
                    "linestyle": DASHES[number // len(COLOURS) % len(DASHES)],
                    "marker": "o" if len(line.points) <= 12 else "",
                }
                axes.plot(*zip(*line.points, strict=True), label=line.name, **kind)
            if self.x.log:
                axes.set_xscale("log", base=2)
            if self.y.log:
                axes.set_yscale("log", base=2)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(StrMethodFormatter("{x:,.6g}"))
            if axes.lines:
                figure.legend(loc="outside right upper", frameon=False)
            drawn = io.StringIO()
            figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
        return drawn.getvalue()


def can_draw() -> bool:
    return find_spec("matplotlib") is not None
