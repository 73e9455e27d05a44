"""Importances: the decrease of impurity by attribute, of a tree and on average of members."""

import json

import numpy as np
import pytest

from core.export import by_importance, importances, outline, to_document
from core.export.importance import decreases
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.naive.rows import mixed
from tests.unit.core.builders import FORESTS, answer, halves, schema_of, spec_of, table_of


def gini(masses):
    return 1.0 - sum((mass / sum(masses)) ** 2 for mass in masses) if sum(masses) else 0.0


def plainly(tree, nodes):
    """Return by attribute the decrease of one tree: node by node, from the leaves below each."""
    by_number = {node.number: node for node in nodes}

    def leaves(node):
        if not node.children:
            return np.array(node.masses)
        return sum(leaves(by_number[child]) for child in node.children)

    decrease_of: dict[str, float] = {}
    stack = [tree]
    while stack:
        node = stack.pop()
        if node.children:
            stack += [by_number[child] for child in node.children]
            parts = [leaves(by_number[child]) for child in node.children]
            whole = sum(parts)
            taken = whole.sum() * gini(whole) - sum(part.sum() * gini(part) for part in parts)
            name = by_number[node.children[0]].branch.attribute
            decrease_of[name] = decrease_of.get(name, 0.0) + taken
    return decrease_of


def test_a_tree_that_was_never_split_has_none():
    assert importances(table_of(schema_of(None, 3)).model(0)) == {"x0": 0.0, "x1": 0.0}
    table = table_of(schema_of(None), Spec.parse({"learner": "naive-bayes"}))
    assert importances(table.model(0)) == {"x0": 0.0}


def test_the_attribute_that_decides_has_it_all():
    table = table_of(schema_of(None, None, None))
    answer(table, *halves(400))
    assert importances(table.model(0)) == {"x0": 1.0, "x1": 0.0, "x2": 0.0}


def test_the_most_important_attribute_comes_first_and_equal_ones_as_in_the_schema():
    table, (x, label) = table_of(schema_of(None, None, None)), halves(400)
    answer(table, x[:, [2, 1, 0]], label)
    assert by_importance(table.model(0)) == [("x2", 1.0), ("x0", 0.0), ("x1", 0.0)]


def test_of_a_tree_they_are_the_decreases_of_its_tests():
    schema = Schema.of([Attribute("a"), Attribute("b", "nominal", ("0", "1", "2")), Attribute("c")], "xy")
    draw = np.random.default_rng(3)
    x = np.column_stack([draw.random(2000), draw.integers(0, 3, 2000), draw.random(2000)])
    label = ((x[:, 0] > 0.5) ^ (x[:, 1] == 1) ^ (x[:, 2] > 0.3)).astype(int)
    table = table_of(schema, spec_of(grace_period=20, delta=0.5, tau=0.5))
    answer(table, x, label)
    model = table.model(0)
    nodes = outline(model)
    taken = plainly(nodes[0], nodes)
    assert len(taken) == 3
    total = sum(taken.values())
    assert importances(model) == pytest.approx({name: taken[name] / total for name in "abc"})
    assert json.loads(json.dumps(to_document(model)))["importances"] == importances(model)


@pytest.mark.parametrize("name", FORESTS)
def test_of_a_forest_they_are_the_mean_of_its_members(name):
    rows = mixed(1500)
    spec = Spec.parse({"learner": {"name": name, "members": 4}, "evaluation": {"every": 0}})
    table = table_of(rows.schema(), spec)
    answer(table, rows.x, rows.y, rows.weight)
    model = table.model(0)
    nodes = outline(model)
    by_number = {node.number: node for node in nodes}
    shares = []
    for member in nodes[0].children:
        taken = plainly(by_number[member], nodes)
        shares.append({name: part / sum(taken.values()) for name, part in taken.items()})
    grown = [share for share in shares if share]
    assert len(grown) > 1
    shares_of_forest = importances(model)
    for attribute in model.schema.attributes:
        expected = sum(share.get(attribute.name, 0.0) for share in grown) / len(grown)
        assert shares_of_forest[attribute.name] == pytest.approx(expected, abs=1e-12)
    assert sum(shares_of_forest.values()) == pytest.approx(1.0)
    columns = {attribute.name: at for at, attribute in enumerate(model.schema.attributes)}
    assert decreases(nodes, columns).shape[0] >= 4
