"""The drawing of a tree: boxes never overlap, large trees stay bounded, paths and features are found."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.web.pages.model.node_table import NODES_LISTED, nodes_table
from streamapp.web.tree.folding import FIRST_MAX, SHOWN_MAX, Folding
from streamapp.web.tree.layout import HEIGHT, LEVEL, WIDTH, Place, layout
from streamapp.web.tree.outline_rows import OutlineRows, matched, split_in_words
from streamapp.web.tree.tree_drawing import Highlights, tree_svg
from tests.unit.streamapp.web.tree.trees import random_tree, tree_of

SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=60)
EVERY_LEVEL = 10**6
CLASSES = ["good", "fraud"]


def placed(tree: OutlineRows, folding: Folding) -> dict[int, Place]:
    shown = folding.shown()
    children = {node: tree.by_number[node]["children"] for node in shown if folding.is_open(node)}
    drawn = layout(shown, children)
    assert drawn.places.keys() == set(shown)
    for place in drawn.places.values():
        assert 0 <= place.x <= drawn.width - WIDTH
        assert 0 <= place.y <= drawn.height - HEIGHT
    return drawn.places


@given(SHAPES, st.integers(0, 6))
def test_boxes_never_overlap_and_stand_in_the_order_of_the_branches(shape: list[int], depth: int) -> None:
    tree = OutlineRows(tree_of(shape))
    folding = Folding(tree)
    folding.unfold_to(depth)
    places = placed(tree, folding)
    for one, other in itertools.combinations(places.values(), 2):
        apart = abs(one.x - other.x) >= WIDTH or abs(one.y - other.y) >= HEIGHT
        assert apart, (one, other)
    for node, place in places.items():
        row = tree.by_number[node]
        below = [places[child] for child in row["children"] if child in places]
        assert [child.x for child in below] == [place.x + LEVEL] * len(below)
        assert [child.y for child in below] == sorted(child.y for child in below)
        if below:
            assert below[0].y <= place.y <= below[-1].y


@given(SHAPES, st.lists(st.integers(0, 100), max_size=30))
def test_any_folding_draws_a_tree_within_its_bound(shape: list[int], clicks: list[int]) -> None:
    tree = OutlineRows(tree_of(shape))
    folding = Folding(tree)
    for click in clicks:
        shown = folding.shown()
        folding.toggle(shown[click % len(shown)])
        shown = folding.shown()
        assert len(shown) == len(set(shown)) <= SHOWN_MAX
        assert all(tree.by_number[node]["parent"] in {None, *shown} for node in shown)


@pytest.mark.parametrize("n", [300, 3000])
def test_a_large_tree_begins_folded_and_every_node_can_be_reached(n: int) -> None:
    tree = OutlineRows(random_tree(n))
    folding = Folding(tree)
    assert 10 < len(folding.shown()) <= FIRST_MAX
    deepest = max(tree.rows, key=lambda row: row["depth"])["node"]
    assert deepest not in folding.shown()
    assert folding.reveal([deepest]) == 1
    assert deepest in folding.shown()
    whole = folding.unfold_to(EVERY_LEVEL)
    assert whole == (len(tree) <= SHOWN_MAX)
    assert len(folding.shown()) <= SHOWN_MAX
    drawn = tree_svg(tree, CLASSES, folding)
    # Half a kilobyte for a node, with its name for assistive technology.
    assert len(drawn) < 1_500 * len(folding.shown())


def test_a_drawing_names_what_is_folded_found_and_on_the_path() -> None:
    tree = OutlineRows(random_tree(300))
    folding = Folding(tree)
    conditions = tree.conditions(folding.shown()[-1])
    way = tree.path([*conditions[:-1], f"{conditions[-1]} (missing)"])
    assert way is not None
    assert way[0] == 0
    assert tree.conditions(way[-1]) == conditions
    found = tree.testing("AMO")
    assert {tree.by_number[node]["attribute"] for node in found} == {"amount"}
    svg = ET.fromstring(tree_svg(tree, CLASSES, folding, Highlights(way[-1], set(way), set(found))))
    items = {int(item.attrib["data-node"]): item for item in svg.iter() if "data-node" in item.attrib}
    assert list(items) == folding.shown()
    assert [node for node in items if "on the path" in items[node].attrib["aria-label"]] == way
    assert [node for node, item in items.items() if item.attrib["aria-selected"] == "true"] == way[-1:]
    assert [node for node, item in items.items() if item.attrib["tabindex"] == "0"] == way[-1:]
    for node, item in items.items():
        row = tree.by_number[node]
        assert ("found by the search" in item.attrib["aria-label"]) == (node in found)
        assert item.attrib.get("aria-expanded") == (
            str(folding.is_open(node)).lower() if row["children"] else None
        )
        if row["children"] and not folding.is_open(node):
            assert f"{tree.below[node]:,}" in "".join(item.itertext()), "how many nodes it hides"


def test_bars_are_wider_the_more_records_came_and_show_the_classes() -> None:
    rows = tree_of([2])
    svg = ET.fromstring(tree_svg(OutlineRows(rows), CLASSES, Folding(OutlineRows(rows))))
    widths: dict[int, float] = {}
    for item in svg.iter():
        if "data-node" in item.attrib:
            bars = [each for each in item if "fill" in each.attrib]
            widths[int(item.attrib["data-node"])] = sum(float(bar.attrib["width"]) for bar in bars)
    records = {row["node"]: row["records"] for row in rows}
    assert sorted(widths, key=widths.__getitem__) == sorted(records, key=records.__getitem__)


def test_texts_of_records_are_escaped() -> None:
    nasty = "\"'<img src=x onerror=alert(1)>&{{x}}"
    rows = tree_of([2])
    rows[1]["branch"] = nasty
    tree = OutlineRows(rows)
    for text in (tree_svg(tree, [nasty, nasty], Folding(tree)), nodes_table(rows, [nasty, nasty], {})):
        assert "<img" not in text
        assert re.search(r"onerror=alert", text)  # it is there, as text
        ET.fromstring(text)


def test_a_path_that_the_tree_does_not_have_is_none() -> None:
    tree = OutlineRows(tree_of([2]))
    assert tree.path([]) == [0]
    assert tree.path(["colour = red"]) is None
    assert OutlineRows([]).path([]) is None
    assert Folding(OutlineRows([])).shown() == []
    cut = tree_of([2])
    cut[1]["leaves_below"] = 5
    assert OutlineRows(cut).path([cut[1]["branch"], "age > 7"]) == [0, 1], "the tree is cut there"


def test_a_node_with_more_children_than_can_be_drawn_stays_folded() -> None:
    tree = OutlineRows(tree_of([SHOWN_MAX + 1]))
    folding = Folding(tree)
    assert folding.shown() == [0]
    assert not folding.toggle(0)
    assert folding.reveal([7]) == 0


def test_a_split_that_made_another_test_is_not_taken_for_this_one() -> None:
    rows = tree_of([2])
    detail = {"attribute": "amount", "threshold": 0.0, "gap": 0.2, "bound": 0.1, "labels": 40.0}
    split = {"time_ms": 0, "version": 40, "detail": detail}
    assert matched(rows, {0: split, 1: split}).keys() == {0}
    assert matched(rows, {0: split | {"detail": detail | {"threshold": 2.0}}}) == {}
    assert matched(rows, {0: split | {"detail": detail | {"attribute": "y"}}}) == {}
    assert "gap 0.2, bound 0.1, after 40 labels" in split_in_words(split)
    assert "not known" in split_in_words(None)


def test_the_table_of_nodes_is_bounded() -> None:
    rows = random_tree(3000)
    text = nodes_table(rows, CLASSES, {})
    assert text.count("<tr>") == 1 + NODES_LISTED
    assert f"and {len(rows) - NODES_LISTED:,} more nodes" in text
