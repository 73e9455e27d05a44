"""A tree in all its forms."""

import json
from typing import Any
from xml.etree import ElementTree

import numpy as np

from core.export import outline, svg, to_document, to_dot, to_svg, to_text
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of


def test_a_leaf_that_has_seen_nothing():
    assert to_text(table_of(schema_of(None)).model(0)) == "(nothing seen)\n"


def test_a_numeric_test():
    table = table_of(Schema.of([Attribute("length")], ["short", "long"]))
    x, label = halves(400, columns=1)
    answer(table, x[:200], label[:200])
    lines = to_text(table.model(0)).splitlines()
    assert lines[0] == "all"
    assert lines[1].startswith("  length <= 0.")
    assert ": short (" in lines[1]
    assert ": long (" in lines[2]
    assert len(lines) == 3


def test_nominal_tests():
    schema = Schema.of([Attribute("colour", "nominal", ("red", "green", "blue"))], ["no", "yes"])
    x = np.arange(200)[:, None] % 3.0
    for binary, expected in (
        (
            False,
            [
                "all",
                "  colour = red: no (67, 0)",
                "  colour = green: yes (0, 67)",
                "  colour = blue: yes (0, 66)",
            ],
        ),
        (True, ["all", "  colour = red: no (67, 0)", "  colour != red: yes (0, 133)"]),
    ):
        table = table_of(schema, spec_of(binary_splits=binary))
        answer(table, x, (x[:, 0] > 0).astype(int))
        assert to_text(table.model(0)).splitlines() == expected


def grown(n=2000):
    """Return a model with numeric, binary and multiway tests, and a name that is full of markup."""
    schema = Schema.of(
        [Attribute('a "<b>"'), Attribute("colour", "nominal", ("red", "gr&en", "\x01blue")), Attribute("c")],
        ["no", "yes"],
    )
    draw = np.random.default_rng(3)
    x = np.column_stack([draw.random(n), draw.integers(0, 3, n), draw.random(n)])
    label = ((x[:, 0] > 0.5) ^ (x[:, 1] == 1) ^ (x[:, 2] > 0.3)).astype(int)
    table = table_of(schema, spec_of(grace_period=20, delta=0.5, tau=0.5))
    answer(table, x, label)
    assert table.model(0).summary().depth > 2
    return table.model(0)


def test_every_form_tells_of_every_node():
    model = grown()
    summary = model.summary()
    nodes = outline(model)
    assert len(nodes) == summary.nodes
    assert sum(node.is_leaf for node in nodes) == summary.leaves
    assert max(node.depth for node in nodes) == summary.depth
    assert len(to_text(model).splitlines()) == summary.nodes
    document = json.loads(json.dumps(to_document(model)))
    assert [node["node"] for node in document["nodes"]] == [node.number for node in nodes]
    assert document["summary"]["leaves"] == summary.leaves
    assert Spec.parse(document["spec"]) == model.spec
    assert to_dot(model).count(" -> ") == summary.nodes - 1
    drawing = ElementTree.fromstring(to_svg(model))
    assert len(drawing.findall("{*}g")) == summary.nodes
    assert len(drawing.findall("{*}path")) == summary.nodes - 1


def test_parents_come_first_and_know_their_children():
    nodes = outline(grown())
    seen: dict[int, Any] = {}
    for node in nodes:
        if node.parent >= 0:
            assert node.number in seen[node.parent].children
            assert node.depth == seen[node.parent].depth + 1
        assert (node.branch is None) == (node.parent < 0)
        seen[node.number] = node


def test_what_lies_deeper_is_left_out_and_counted():
    model = grown()
    whole, cut = outline(model), outline(model, 1)
    assert {node.number for node in cut} == {node.number for node in whole if node.depth <= 1}
    assert sum(node.leaves_below or node.is_leaf for node in cut) == model.summary().leaves
    assert any(line.endswith(" leaves") for line in to_text(model, 1).splitlines())
    assert len(to_text(model, 0).splitlines()) == 1
    ElementTree.fromstring(to_svg(model, 1))


def test_boxes_of_a_drawing_do_not_touch():
    nodes = outline(grown())
    boxes = list(svg.layout(nodes).values())
    assert len(boxes) == len(nodes)
    for i, (x, y) in enumerate(boxes):
        for other_x, other_y in boxes[:i]:
            assert abs(x - other_x) >= svg.WIDTH or abs(y - other_y) >= svg.HEIGHT


def test_a_tree_of_one_leaf_can_be_drawn():
    model = table_of(schema_of(None)).model(0)
    assert "(nothing seen)" in to_svg(model)
    assert to_dot(model).count("label") == 1


def test_a_tie_of_a_c_tree_goes_to_the_second_class_in_every_form():
    """[D9]: as its predictions do; another tree's goes to the first."""
    for name, expected in (("c-tree", "b"), ("h-tree", "a")):
        table = table_of(schema_of(None), Spec.parse({"learner": {"name": name, "leaf_model": "mc"}}))
        answer(table, np.zeros((6, 1)), [0, 1, 0, 1, 0, 1])
        model = table.model(0)
        assert answer(table, np.zeros((1, 1))).prediction[0] == "ab".index(expected)
        assert to_text(model) == f"{expected} (3, 3)\n"
        assert f"{expected} (3, 3)" in to_dot(model)
        assert f">{expected} 50.0% of 6<" in to_svg(model)
        assert to_document(model)["nodes"][0]["majority"] == "ab".index(expected)


def test_an_empty_leaf_votes_for_its_parents_class():
    schema = Schema.of([Attribute("colour", "nominal", ("red", "green", "blue"))], ["no", "yes"])
    table = table_of(schema, spec_of(grace_period=100, delta=0.1))
    x = np.arange(300)[:, None] % 2.0  # blue never comes
    answer(table, x, np.where(np.arange(300) % 2 == 0, 1, np.arange(300) % 10 == 1))
    model = table.model(0)
    assert answer(table, [[2.0]]).prediction[0] == 1
    blue = next(node for node in outline(model) if str(node.branch) == "colour = blue")
    assert (blue.masses, blue.majority) == ((0.0, 0.0), 1)
    assert "  colour = blue: yes (nothing seen)" in to_text(model).splitlines()
    assert "yes (nothing seen)" in to_dot(model)
    assert "yes (nothing seen)" in to_svg(model)
    assert [node["majority"] for node in to_document(model)["nodes"]][blue.number] == 1
