"""Charts: what a page draws of curves and trees."""

from __future__ import annotations

from typing import Any

import pytest

from streamapp.web.formatting import event_in_words
from streamapp.web.pages.charts import (
    OTHERS,
    class_history,
    class_shares,
    drift_timeline,
    forecast_chart,
    learning_curve,
    matched,
    tree_chart,
)


def node(number: int, parent: int | None, records: float, *children: int, **more: Any) -> dict[str, Any]:
    return {
        "node": number,
        "parent": parent,
        "depth": 0 if parent is None else 1,
        "branch": None if parent is None else "x <= 1.5",
        "test": "numeric" if children else None,
        "attribute": "x" if children else None,
        "value": 1.5 if children else None,
        "children": list(children),
        "records": records,
        "own": records,
        "masses": [3.0, 1.0],
        "purity": 0.75,
        "majority": 0,
        "leaves_below": 0,
    } | more


def split(**more: Any) -> dict[str, Any]:
    detail = {"node": 0, "attribute": "x", "test": "numeric", "threshold": 1.5, "action": "split"}
    detail |= {"gap": 0.2, "bound": 0.1, "labels": 40.0, "reason": "gap"}
    return {"event": "split", "time_ms": 0, "version": 40, "detail": detail | more}


def test_a_tree_hangs_together_and_says_when_a_node_split() -> None:
    nodes = [node(0, None, 100.0, 1, 2, own=40.0), node(1, 0, 35.0), node(2, 0, 25.0)]
    options = tree_chart(nodes, ["good", "bad"], {0: split()})
    (root,) = options["series"][0]["data"]
    assert [child["value"] for child in root["children"]] == [35.0, 25.0]
    story = root["tooltip"]["formatter"]
    assert "before its split 40, further down 60" in story
    assert "gap 0.2, bound 0.1, after 40 labels" in story
    sizes = [root["symbolSize"], *(child["symbolSize"] for child in root["children"])]
    assert sizes == sorted(sizes, reverse=True)


def test_a_split_that_made_another_test_is_not_taken_for_this_one() -> None:
    nodes = [node(0, None, 100.0, 1, 2), node(1, 0, 35.0), node(2, 0, 25.0)]
    assert matched(nodes, {0: split(), 1: split()}).keys() == {0}
    assert matched(nodes, {0: split(threshold=2.0)}) == {}
    assert matched(nodes, {0: split(attribute="y")}) == {}


def test_names_of_others_are_text_and_no_template() -> None:
    nasty = "{c}<img src=x onerror=alert(1)>"
    options = tree_chart([node(0, None, 1.0)], [nasty, "b"], {})
    (root,) = options["series"][0]["data"]
    assert options["tooltip"]["renderMode"] == "richText", "no HTML is made of it"
    assert "{" not in root["tooltip"]["formatter"]
    assert learning_curve({nasty: []})["tooltip"]["renderMode"] == "richText"


def test_a_curve_has_its_interval_and_the_marks_of_its_events() -> None:
    points = [
        {
            "labels": n,
            "records": 2 * n,
            "accuracy": 0.5,
            "accuracy_windowed": 0.5,
            "accuracy_unbiased": 0.6,
            "accuracy_unbiased_low": 0.5,
            "accuracy_unbiased_high": 0.75,
        }
        for n in (10, 20)
    ]
    options = learning_curve({"k": points}, [split() | {"event": "drift"}, split() | {"event": "created"}])
    series = {each["name"]: each for each in options["series"]}
    assert series["interval from"]["data"] == [[10, 0.5], [20, 0.5]]
    assert series["interval of 95 %"]["data"] == [[10, 0.25], [20, 0.25]]
    assert series["unbiased"]["data"] == [[10, 0.6], [20, 0.6]]
    (marked,) = [each["markLine"] for each in options["series"] if "markLine" in each]
    assert [mark["xAxis"] for mark in marked["data"]] == [40]
    assert "interval from" not in options["legend"]["data"]
    two = learning_curve({"k": points, "l": points[:1]})
    assert not [each for each in two["series"] if "stack" in each], "of two models no band hides another"


def test_shares_add_up_and_events_have_words() -> None:
    bars = class_shares(["a", "b"], [1.0, 3.0])
    assert [each["value"] for each in bars["series"][0]["data"]] == [0.25, 0.75]
    assert bars["yAxis"]["data"] == ["a", "b"]
    assert event_in_words(split()) == "node 0 split on x <= 1.5; the gap: gap 0.2, bound 0.1, after 40 labels"
    made: dict[str, Any] = {"event": "thresholds-set", "detail": {"attributes": 3, "left": 2}}
    assert event_in_words(made) == (
        "numeric attributes with thresholds of their first values: 3; with too few values yet: 2"
    )
    drawn = drift_timeline([split(), {"event": "created", "time_ms": 1, "detail": {}}])
    assert len(drawn["series"][0]["data"]) == 1


def test_class_shares_over_time_are_those_of_the_labels_between_evaluations() -> None:
    points: list[dict[str, object]] = [
        {"labels": 10, "classes": {"a": 5, "b": 5}},
        {"labels": 10, "classes": {"a": 5, "b": 5}},  # twice on the topic
        {"labels": 15, "classes": None},  # of an earlier release
        {"labels": 30, "classes": {"b": 20, "a": 10}},
    ]
    drawn = {each["name"]: each["data"] for each in class_history(points)["series"]}
    assert drawn == {"b": [[10, 0.5], [30, 0.75]], "a": [[10, 0.5], [30, 0.25]]}
    many = {f"c{n}": 10 for n in range(10)}
    *areas, others = class_history([{"labels": 100, "classes": many}])["series"]
    assert [each["data"] for each in areas] == [[[100, 0.1]]] * 7
    assert (others["name"], others["data"]) == (OTHERS, [[100, 0.3]])
    assert class_history([])["series"] == []


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_figure_without_an_end_of_its_band_has_no_place_in_a_chart(end: str) -> None:
    """Anybody may write to the topic of evaluations: the page of the model has to open."""
    figures = {"labels": 50, "accuracy": 0.7, "accuracy_windowed": 0.7}
    for name in ("accuracy_unbiased", "accuracy_forecast"):
        figures |= {name: 0.7, f"{name}_low": 0.6, f"{name}_high": 0.8}
        del figures[f"{name}_{end}"]
    series = [*learning_curve({"m": [figures]})["series"], *forecast_chart(figures)["series"]]
    assert [line["name"] for line in series if line["data"]] == ["on requested labels", "recent"]
