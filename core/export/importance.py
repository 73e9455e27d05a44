"""Importances: how much each attribute's tests take off the impurity, of one tree or on average of members.

Mean decrease of impurity (Breiman, Friedman, Olshen and Stone 1984, section 5.3; of forests Breiman 2001). Of
each test: the Gini impurity of all class mass below it, times that mass, less the same of its branches. A
tree's decreases are added up by attribute and divided by their sum, so that each tree weighs alike.

It says what these trees have made of these records, not what is true of the attributes. Attributes with many
values or thresholds have more chances to take something off by luck (Strobl and others 2007); of two that say
the same one may get all; an attribute that is needed by an interaction alone may get little; and part of the
mass of young leaves was estimated when they were made. Nothing of it is measured on records not learned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.export.outline import answering, outline
from core.model.model import Model
from core.tree.layout import Floats
from core.tree.outline import TESTS, Outline


def importances(model: Model) -> dict[str, float]:
    """Return by name the importance of each attribute, in the order of the schema: shares of 1.

    Zeros while there is no test. Of several trees the mean of those that have tests. Background trees and
    alternate trees, which do not answer yet, have no part in it.
    """
    names = [attribute.name for attribute in model.schema.attributes]
    found = np.zeros(len(names))
    trees = decreases(answering(outline(model)), {name: column for column, name in enumerate(names)})
    grown = trees[trees.sum(axis=1) > 0.0]
    if len(grown):
        found = (grown / grown.sum(axis=1, keepdims=True)).mean(axis=0)
    return dict(zip(names, found.tolist(), strict=True))


def by_importance(model: Model) -> list[tuple[str, float]]:
    """Return names and importances of the attributes, most first; equal ones in the order of the schema."""
    return sorted(importances(model).items(), key=lambda each: -each[1])


def decreases(nodes: Sequence[Outline], columns: dict[str, int]) -> Floats:
    """Return what the tests of each attribute take off, float64[tree, column]; nodes: parents first."""
    places = {node.number: place for place, node in enumerate(nodes)}
    below = [np.zeros(len(node.masses)) if node.children else np.array(node.masses) for node in nodes]
    for node in reversed(nodes):
        if node.parent >= 0:
            below[places[node.parent]] += below[places[node.number]]
    tree_of: list[int] = []
    roots = 0
    for node in nodes:
        parent = nodes[places[node.parent]] if node.parent >= 0 else None
        if parent is None or parent.test not in TESTS.values():  # what stands above the members is no test
            tree_of.append(roots)
            roots += 1
        else:
            tree_of.append(tree_of[places[node.parent]])
    found = np.zeros((roots, len(columns)))
    for node, masses, tree in zip(nodes, below, tree_of, strict=True):
        if node.children and node.test in TESTS.values():
            branches = [places[child] for child in node.children]
            column = columns[nodes[branches[0]].branch.attribute]  # type: ignore[union-attr]
            left = sum(_impurity(below[place]) for place in branches)
            found[tree, column] += max(_impurity(masses) - left, 0.0)
    return found


def _impurity(masses: Floats) -> float:
    """Return Gini's impurity times the mass: what is left to take off."""
    total = float(masses.sum())
    return total - float((masses * masses).sum()) / total if total > 0.0 else 0.0
