"""Charts: lines with marks of their own, bands, labelled events, words and a table for every value."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.web.charts.accuracy_chart import (
    RECENT,
    SO_FAR,
    UNBIASED,
    accuracy_chart,
    compared_curves,
    forecast_chart,
)
from streamapp.web.charts.chart_view import ROWS_MAX, values_table
from streamapp.web.charts.drawing import (
    ALARM,
    HOVER,
    LINES_MAX,
    MARKS_MAX,
    Drawing,
    Line,
    Mark,
    Names,
    Point,
    line_chart,
    merged_marks,
)
from streamapp.web.charts.event_timeline import event_timeline
from streamapp.web.charts.label_charts import OTHERS, budget_chart, class_history
from streamapp.web.pages.model.labels_tab import shares_table


def evaluation(labels: int, **more: Any) -> dict[str, Any]:
    figures = {"labels": labels, "records": 2 * labels, "accuracy": 0.5, "accuracy_windowed": 0.625}
    return figures | more


def unbiased(labels: int) -> dict[str, Any]:
    ends = {"accuracy_unbiased_low": 0.5, "accuracy_unbiased_high": 0.75}
    return evaluation(labels, accuracy_unbiased=0.6, **ends)


def event(kind: str, at: int, **detail: Any) -> dict[str, Any]:
    return {"event": kind, "time_ms": at, "version": at, "offset": at, "detail": detail}


def lines_of(drawing: Drawing) -> dict[str, dict[str, Any]]:
    """Return the drawn lines by name, without bands."""
    series = drawing.options["series"]
    return {
        each["name"]: each
        for each in series
        if each["type"] == "line" and "stack" not in each and each["name"] != HOVER
    }


def test_a_line_has_one_legend_item_and_a_mark_that_is_no_colour() -> None:
    names = [f"line {at}" for at in range(LINES_MAX + 3)]
    lines = [Line(name, [Point(0, 1.0), Point(1, 2.0)]) for name in names]
    drawing = line_chart(Names("labels", "n"), lines)
    assert drawing.options["legend"]["data"] == names[:LINES_MAX]
    looks = {(str(line["lineStyle"]["type"]), line["symbol"]) for line in lines_of(drawing).values()}
    assert len(looks) == LINES_MAX
    assert len({dash for dash, _ in looks}) == len({symbol for _, symbol in looks}) == LINES_MAX
    drawn = {each["name"] for each in drawing.options["series"]} - {HOVER}
    assert drawn == set(names[:LINES_MAX]), "symbols and bands go with the item of their line"


def test_a_curve_has_its_interval_as_a_band_and_in_words() -> None:
    drawing = accuracy_chart([unbiased(10), unbiased(20), evaluation(30)])
    assert drawing.options["legend"]["data"] == [UNBIASED, RECENT, SO_FAR]
    low, width = (each["data"] for each in drawing.options["series"] if "stack" in each)
    assert low == [[10, 50.0], [20, 50.0]]
    assert width == [[10, 25.0], [20, 25.0]]
    assert drawing.head == ["labels", f"{UNBIASED} (%, 95 % interval)", f"{RECENT} (%)", f"{SO_FAR} (%)"]
    assert drawing.rows[0] == ["10", "60.0 % (50.0 to 75.0)", "62.5 %", "50.0 %"]
    assert drawing.rows[2] == ["30", "", "62.5 %", "50.0 %"]
    hover = drawing.options["series"][0]
    assert [point["text"] for point in hover["data"]] == drawing.readouts
    assert drawing.readouts[0].split("\n") == [
        "labels 10",
        f"{UNBIASED}: 60.0 % (50.0 to 75.0)",
        f"{RECENT}: 62.5 %",
        f"{SO_FAR}: 50.0 %",
    ]
    axis = drawing.options["yAxis"]
    assert (axis["min"], axis["max"]) == (50.0, 75.0), "not from 0, at round ticks"


def test_marks_have_a_label_and_a_page_and_do_not_lie_on_each_other() -> None:
    marks = [Mark(12, "drift", "/d"), Mark(13, "drift", "/e"), Mark(19, "reset", "/r", is_alarm=False)]
    drawing = accuracy_chart([evaluation(10), evaluation(20)], [*marks, Mark(99, "drift")])
    drawn = drawing.options["series"][0]["markLine"]["data"]
    assert [(each["xAxis"], each["label"]["formatter"]) for each in drawn] == [
        (12, "2 drifts"),
        (19, "reset"),
    ]
    assert [each["lineStyle"]["color"] == ALARM for each in drawn] == [True, False]
    assert [(link.text, link.address) for link in drawing.links] == [
        ("2 drifts at 12 labels", "/e"),
        ("reset at 19 labels", "/r"),
    ]


@given(st.lists(st.integers(0, 1000), max_size=60))
def test_labels_of_marks_are_apart_and_none_is_lost(places: list[int]) -> None:
    merged = merged_marks([Mark(place, "drift") for place in places], 1000)
    assert len(merged) <= MARKS_MAX + 1
    assert all(b.x - a.x >= 1000 / MARKS_MAX for a, b in itertools.pairwise(merged))
    counted = [1 if mark.text == "drift" else int(mark.text.split()[0]) for mark in merged]
    assert sum(counted) == len(places)


def test_two_models_have_no_bands_that_hide_each_other() -> None:
    drawing = compared_curves({"k": [unbiased(10), unbiased(20)], "l": [evaluation(10)]})
    assert not [each for each in drawing.options["series"] if "stack" in each]
    assert drawing.options["legend"]["data"] == [f"k: {RECENT}", f"k: {UNBIASED}", f"l: {RECENT}"]


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_figure_without_an_end_of_its_band_has_no_place_in_a_chart(end: str) -> None:
    """Anybody may write to the topic of evaluations: the page of the model has to open."""
    figures = evaluation(50)
    for name in ("accuracy_unbiased", "accuracy_forecast"):
        figures |= {name: 0.7, f"{name}_low": 0.6, f"{name}_high": 0.8}
        del figures[f"{name}_{end}"]
    assert accuracy_chart([figures]).options["legend"]["data"] == [RECENT, SO_FAR]
    assert forecast_chart(figures).is_empty


def test_names_of_others_are_text_and_no_template() -> None:
    nasty = "{c}<img src=x onerror=alert(1)>"
    drawing = compared_curves({nasty: [evaluation(1)]})
    assert drawing.options["tooltip"]["renderMode"] == "richText", "no HTML is made of it"
    assert "<img" not in values_table(drawing.head, drawing.rows)
    assert "<img" not in shares_table([nasty], [1.0])
    timeline = event_timeline([event(nasty, 5, learner=nasty)])
    assert timeline.options["tooltip"]["renderMode"] == "richText"
    assert "{" not in timeline.options["series"][0]["data"][0]["text"]


def test_requests_are_drawn_by_their_ends_beside_the_budget() -> None:
    points = [evaluation(10, answered=8, outstanding=2), evaluation(20, answered=15, outstanding=5)]
    drawing = budget_chart(points, 0.5)
    assert drawing.options["legend"]["data"] == ["answered", "outstanding", "allowed by the budget"]
    assert drawing.rows[-1] == ["40", "15", "5", "20"]
    assert drawing.options["yAxis"]["min"] == 0.0, "counts begin at 0"
    assert "allowed by the budget" not in budget_chart(points, None).options["legend"]["data"]


def test_class_shares_over_time_are_those_of_the_labels_between_evaluations() -> None:
    points: list[dict[str, object]] = [
        {"labels": 10, "classes": {"a": 5, "b": 5}},
        {"labels": 10, "classes": {"a": 5, "b": 5}},  # twice on the topic
        {"labels": 15, "classes": None},  # of an earlier release
        {"labels": 30, "classes": {"b": 20, "a": 10}},
    ]
    drawn = {name: line["data"] for name, line in lines_of(class_history(points)).items()}
    assert drawn == {"b": [[10, 50.0], [30, 75.0]], "a": [[10, 50.0], [30, 25.0]]}
    many = {f"c{n}": 10 for n in range(10)}
    *lines, others = lines_of(class_history([{"labels": 100, "classes": many}])).items()
    assert [line["data"] for _, line in lines] == [[[100, 10.0]]] * 7
    assert (others[0], others[1]["data"]) == (OTHERS, [[100, 30.0]])
    assert class_history([]).is_empty


def test_every_event_is_on_the_timeline_with_a_row_and_a_page_for_its_kind() -> None:
    events = [event("split", 9), event("created", 1), event("drift", 5, level="drift"), event("split", 3)]
    drawing = event_timeline(events, "/model?key=k&tab=events")
    assert [each["name"] for each in drawing.options["series"]] == ["drift", "split", "created"]
    assert len({each["symbol"] for each in drawing.options["series"]}) == 3
    assert [row[1] for row in drawing.rows] == ["created", "split", "drift", "split"], "in order of time"
    for text, (series, value) in zip(drawing.readouts, drawing.places, strict=True):
        point = drawing.options["series"][series]["data"][value]
        assert point["text"].split("\n")[1] in text
    assert drawing.links[0].address == "/model?key=k&tab=events&kind=drift"
    with_records = event_timeline(events, record_page=lambda each: f"/at/{each['offset']}")
    assert [with_records.addresses[place] for place in with_records.places] == [
        f"/at/{at}" for at in (1, 3, 5, 9)
    ]
    many = event_timeline([event(f"kind {at:02}", at) for at in range(20)])
    assert len(many.options["series"]) == LINES_MAX, "kinds without a row share the last one"
    assert sum(len(each["data"]) for each in many.options["series"]) == 20


def test_a_table_of_values_is_bounded_and_says_so() -> None:
    text = values_table(["x"], [[str(at)] for at in range(ROWS_MAX + 50)])
    assert text.count("<tr>") == 1 + ROWS_MAX
    assert "50 earlier rows are left out" in text
    assert values_table(["x"], [["1"]]).count("<caption>") == 0
