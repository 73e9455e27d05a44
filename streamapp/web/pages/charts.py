"""Charts: options of ECharts for curves and trees. Names from records are text: no tooltip is HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamapp.web.formatting import cut, event_in_words, gap_in_words, moment, number, share

# The colours of Okabe and Ito, which are distinct with any kind of colour vision.
COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#000000")
_TOOLTIP: Final = {"renderMode": "richText", "confine": True}
_GRID: Final = {"left": 48, "right": 24, "top": 56, "bottom": 40}
CLASSES_DRAWN: Final = len(COLOURS) - 1
OTHERS: Final = "all others"
MORE: Final = 500
"""Labels that a forecast looks ahead (core/learning_curve/fit.py)."""

Point = Mapping[str, Any]
_NONE: Final[Point] = {"classes": {}}


def learning_curve(curves: Mapping[str, Sequence[Point]], events: Sequence[Point] = ()) -> dict[str, Any]:
    """Return naive and unbiased accuracy of each model against labels; for one model with its interval.

    events: drifts and splits of a single model, drawn as lines at their label.
    """
    series: list[dict[str, Any]] = []
    single = len(curves) == 1
    for at, (name, points) in enumerate(curves.items()):
        colour = COLOURS[2 * at % len(COLOURS)]
        other = COLOURS[(2 * at + 1) % len(COLOURS)]
        of = "" if single else f"{cut(name)}: "
        series.append(_line(f"{of}on requested labels", points, "accuracy", colour))
        series.append(_line(f"{of}recent", points, "accuracy_windowed", colour, dashed=True))
        ends = "accuracy_unbiased_low", "accuracy_unbiased_high"
        unbiased = [point for point in points if all(point.get(end) is not None for end in ends)]
        if unbiased:
            if single:
                series += _band(unbiased, ends, "interval of 95 %", other)
            series.append(_line(f"{of}unbiased", unbiased, "accuracy_unbiased", other))
    if single and series and events:
        series[0]["markLine"] = _marks(events)
    return _accuracies(series)


def _accuracies(series: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a chart of accuracies against labels."""
    return {
        "animation": False,
        "aria": {"enabled": True},
        "color": list(COLOURS),
        "tooltip": {**_TOOLTIP, "trigger": "axis"},
        "legend": {
            "type": "scroll",
            "top": 0,
            "data": [line["name"] for line in series if "stack" not in line],
        },
        "grid": _GRID,
        "dataZoom": [{"type": "inside"}],
        "xAxis": {"type": "value", "name": "labels", "nameLocation": "middle", "nameGap": 24},
        "yAxis": {"type": "value", "name": "accuracy", "max": 1, "scale": True},
        "series": series,
    }


def forecast_chart(evaluation: Point | None) -> dict[str, Any]:
    """Return the accuracy by intervals of labels with a band of 90 %, and what is to come after 500 more."""
    newest: Point = evaluation or {}
    curve = newest.get("learning_curve") or {"labels": [], "accuracy": []}
    rows = [
        {"labels": (first + last) / 2, "accuracy": value, "low": low, "high": high}
        for (first, last), (value, low, high) in zip(curve["labels"], curve["accuracy"], strict=True)
    ]
    ahead = []
    figures = {"": "accuracy", "_low": "low", "_high": "high"}
    forecast = {name: newest.get(f"accuracy_forecast{end}") for end, name in figures.items()}
    if None not in forecast.values():
        ahead = [{"labels": newest["labels"] + MORE, **forecast}]
    to_come = rows[-1:] + ahead if ahead else []
    colour, other = COLOURS[:2]
    series = [
        *_band(rows, ("low", "high"), "band of 90 %", colour),
        _line("accuracy by labels", rows, "accuracy", colour),
        *_band(to_come, ("low", "high"), "forecast of 90 %", other),
        _line(f"after {MORE} more labels", to_come, "accuracy", other, dashed=True),
    ]
    return _accuracies(series)


def _line(
    name: str, points: Sequence[Point], measure: str, colour: str, *, dashed: bool = False
) -> dict[str, Any]:
    return {
        "name": name,
        "type": "line",
        "showSymbol": len(points) == 1,
        "lineStyle": {
            "color": colour,
            "type": "dashed" if dashed else "solid",
            "width": 1.5 if dashed else 2,
        },
        "itemStyle": {"color": colour},
        "data": [[point["labels"], _rounded(point.get(measure))] for point in points],
    }


def _band(points: Sequence[Point], ends: tuple[str, str], name: str, colour: str) -> list[dict[str, Any]]:
    """Return two stacked series: an invisible one, and the band above it; name: "… of 95 %"."""
    low, high = ends
    stack = name.partition(" of ")[0]
    below = [[point["labels"], _rounded(point[low])] for point in points]
    width = [[point["labels"], _rounded(point[high] - point[low])] for point in points]
    common = {"type": "line", "stack": stack, "showSymbol": False, "lineStyle": {"opacity": 0}}
    return [
        {**common, "name": f"{stack} from", "data": below, "silent": True, "tooltip": {"show": False}},
        {
            **common,
            "name": name,
            "data": width,
            "silent": True,
            "areaStyle": {"color": colour, "opacity": 0.2},
        },
    ]


def _marks(events: Sequence[Point]) -> dict[str, Any]:
    colours = {"drift": "#8c0000", "split": "#bbbbbb", "revised": "#777777", "pruned": "#777777"}
    return {
        "symbol": "none",
        "silent": True,
        "label": {"show": False},
        "data": [
            {
                "xAxis": event["version"],
                "lineStyle": {"color": colours[event["event"]], "type": "solid", "width": 1},
            }
            for event in events
            if event["event"] in colours
        ],
    }


def budget_chart(points: Sequence[Point], limit: float | None) -> dict[str, Any]:
    """Return how many requested labels were answered, declined or expired or are outstanding, by records.

    limit: the labels per record that the budget allows.
    """
    names = ("answered", "declined", "expired", "outstanding")
    series: list[dict[str, Any]] = [
        {
            "name": name,
            "type": "line",
            "stack": "asked",
            "areaStyle": {"opacity": 0.5},
            "showSymbol": len(points) == 1,
            "data": [[point["records"], point.get(name, 0)] for point in points],
        }
        for name in names
    ]
    if limit is not None and points:
        last = points[-1]["records"]
        series.append(
            {
                "name": "budget",
                "type": "line",
                "showSymbol": False,
                "lineStyle": {"type": "dashed", "color": "#111"},
                "itemStyle": {"color": "#111"},
                "data": [[0, 0], [last, _rounded(limit * last)]],
            }
        )
    return {
        "animation": False,
        "aria": {"enabled": True},
        "color": [COLOURS[2], COLOURS[3], COLOURS[5], COLOURS[4]],
        "tooltip": {**_TOOLTIP, "trigger": "axis"},
        "legend": {"type": "scroll", "top": 0},
        "grid": {**_GRID, "left": 64},
        "dataZoom": [{"type": "inside"}],
        "xAxis": {"type": "value", "name": "records", "nameLocation": "middle", "nameGap": 24},
        "yAxis": {"type": "value", "name": "labels"},
        "series": series,
    }


def class_history(points: Sequence[Point]) -> dict[str, Any]:
    """Return the share of each class among the labels between consecutive evaluations, stacked.

    The classes with most labels have one area each; all other classes share one area.
    """
    with_classes = [point for point in points if point.get("classes")]
    names = list(with_classes[-1]["classes"])[:CLASSES_DRAWN] if with_classes else []
    labels: list[int] = []
    shares: list[list[float]] = []
    for before, after in zip([_NONE, *with_classes], with_classes, strict=False):
        came = {name: max(0, n - before["classes"].get(name, 0)) for name, n in after["classes"].items()}
        if total := sum(came.values()):
            labels.append(after["labels"])
            shares.append([came.get(name, 0) / total for name in names])
    areas = [(cut(name), [heights[at] for heights in shares]) for at, name in enumerate(names)]
    if with_classes and len(with_classes[-1]["classes"]) > len(names):
        areas.append((OTHERS, [max(0.0, 1.0 - sum(heights)) for heights in shares]))
    return {
        "animation": False,
        "aria": {"enabled": True},
        "color": list(COLOURS),
        "tooltip": {**_TOOLTIP, "trigger": "axis"},
        "legend": {"type": "scroll", "top": 0},
        "grid": _GRID,
        "dataZoom": [{"type": "inside"}],
        "xAxis": {"type": "value", "name": "labels", "nameLocation": "middle", "nameGap": 24},
        "yAxis": {"type": "value", "name": "share", "max": 1},
        "series": [
            {
                "name": name,
                "type": "line",
                "stack": "classes",
                "areaStyle": {"opacity": 0.5},
                "showSymbol": len(labels) == 1,
                "data": [[at, _rounded(height)] for at, height in zip(labels, heights, strict=True)],
            }
            for name, heights in areas
        ],
    }


def drift_timeline(events: Sequence[Point]) -> dict[str, Any]:
    """Return drifts, splits and revisions at their times, with one row for each kind."""
    kinds = ("split", "revised", "pruned", "drift")
    return {
        "animation": False,
        "aria": {"enabled": True},
        "color": [COLOURS[0]],
        "tooltip": {**_TOOLTIP, "trigger": "item", "formatter": "{b}"},
        "grid": {**_GRID, "left": 72, "top": 16},
        "dataZoom": [{"type": "inside"}],
        "xAxis": {"type": "time"},
        "yAxis": {"type": "category", "data": list(kinds)},
        "series": [
            {
                "type": "scatter",
                "symbolSize": 10,
                "data": [
                    {
                        "value": [event["time_ms"], event["event"]],
                        "name": cut(event_in_words(dict(event)), 160),
                        "itemStyle": {"color": COLOURS[5] if event["event"] == "drift" else COLOURS[0]},
                    }
                    for event in events
                    if event["event"] in kinds
                ],
            }
        ],
    }


def class_shares(classes: Sequence[str], masses: Sequence[float]) -> dict[str, Any]:
    """Return the weight of each class that a model has learned, the heaviest on top."""
    heaviest = sorted(zip(masses, classes, strict=True), reverse=True)[:20][::-1]
    total = sum(masses) or 1.0
    return {
        "animation": False,
        "aria": {"enabled": True},
        "color": [COLOURS[0]],
        "tooltip": {**_TOOLTIP, "trigger": "item"},
        "grid": {"left": 8, "right": 48, "top": 8, "bottom": 24, "containLabel": True},
        "xAxis": {"type": "value", "max": 1},
        "yAxis": {"type": "category", "data": [cut(name, 20) for _, name in heaviest]},
        "series": [
            {
                "type": "bar",
                "data": [
                    {
                        "value": _rounded(mass / total),
                        "label": {"show": True, "formatter": share(mass / total)},
                    }
                    for mass, _ in heaviest
                ],
                "label": {"position": "right"},
            }
        ],
    }


def tree_chart(
    nodes: Sequence[Point], classes: Sequence[str], splits: Mapping[int, Point], depth: int = 4
) -> dict[str, Any]:
    """Return a tree that can be dragged, zoomed and folded; a node's area grows with its records.

    splits: by node number, the event that gave the node its test. depth: levels that are unfolded at
    first.
    """
    drawn: dict[int, dict[str, Any]] = {}
    most = max((node["records"] for node in nodes), default=0.0) or 1.0
    for node in nodes:
        drawn[node["node"]] = {
            "name": _title(node, classes),
            "value": node["records"],
            "symbolSize": 8 + 28 * (node["records"] / most) ** 0.5,
            "itemStyle": {"color": _colour(node), "borderColor": "#333", "borderWidth": 1},
            "tooltip": {"formatter": _story(node, classes, splits.get(node["node"]))},
            "children": [],
        }
        if node["parent"] is not None:
            drawn[node["parent"]]["children"].append(drawn[node["node"]])
    label = {"position": "bottom", "fontSize": 11, "lineHeight": 14, "distance": 6, "color": "#111"}
    label |= {"backgroundColor": "#fffffff0"}  # edges pass below the label
    return {
        "aria": {"enabled": True},
        "tooltip": {**_TOOLTIP, "trigger": "item"},
        "series": [
            {
                "type": "tree",
                "symbol": "circle",
                "data": [drawn[nodes[0]["node"]]] if nodes else [],
                "orient": "TB",
                "roam": True,
                "top": 24,
                "bottom": 64,
                "left": 48,
                "right": 48,
                "initialTreeDepth": depth,
                "expandAndCollapse": True,
                "edgeShape": "polyline",
                "label": label,
                "leaves": {"label": label},
                "lineStyle": {"color": "#777", "width": 1.5},
                "animationDuration": 0,
                "animationDurationUpdate": 0,
            }
        ],
    }


def _colour(node: Point) -> str:
    """Return the colour of the class with most weight, paler the further a node is from pure."""
    if node["majority"] is None or node["purity"] is None:
        return "#ffffff"
    base = COLOURS[node["majority"] % len(COLOURS)]
    paleness = 0.75 * min(1.0, 2 * (1 - node["purity"]))
    parts = (int(base[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * paleness):02x}" for part in parts)


def _title(node: Point, classes: Sequence[str]) -> str:
    branch = cut(node["branch"] or "all records", 24)
    if node["leaves_below"]:
        below = f"… {node['leaves_below']:,} leaves"
    elif node["majority"] is None:
        below = "nothing seen"
    else:
        below = f"{cut(classes[node['majority']], 14)} {share(node['purity'])}"
    return f"{branch}\n{number(round(node['records']))} records\n{below}"


def _story(node: Point, classes: Sequence[str], split: Point | None) -> str:
    lines = [f"node {node['node']}: {cut(node['branch'] or 'all records', 80)}"]
    lines.append(f"records {number(node['records'])}")
    if node["children"]:
        lines.append(
            f"before its split {number(node['own'])}, further down {number(node['records'] - node['own'])}"
        )
    weights = sorted(zip(node["masses"], classes, strict=False), reverse=True)[:6]
    lines += [f"{cut(name, 30)}: {number(mass)}" for mass, name in weights if mass]
    if node["purity"] is not None:
        lines.append(f"purity {share(node['purity'])}")
    if node["children"]:
        lines.append(split_in_words(split))
    # ECharts reads braces as templates.
    return "\n".join(lines).replace("{", "(").replace("}", ")")


def split_in_words(split: Point | None) -> str:
    """Return when a node got its test, and by which gap; None: the event is not known."""
    if split is None:
        return "the time of its split is not known: before the topic's first event, or in a background tree"
    when = f"split {moment(split['time_ms'])} after {number(split['version'])} labels"
    return f"{when}; {gap_in_words(split['detail'])}"


def matched(nodes: Sequence[Point], splits: Mapping[int, Point]) -> dict[int, Point]:
    """Return the splits that gave the nodes of a tree their present tests."""
    split_of: dict[int, Point] = {}
    for node in nodes:
        split = splits.get(node["node"])
        if split is None or not node["children"] or split["detail"].get("attribute") != node["attribute"]:
            continue
        threshold = split["detail"].get("threshold")
        if node["test"] == "numeric" and threshold != node["value"]:
            continue
        split_of[node["node"]] = split
    return split_of


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
