"""Importances: the decrease of impurity by each attribute's tests, in one tree or as a mean over members.

Mean decrease of impurity (Breiman, Friedman, Olshen and Stone 1984, section 5.3; for forests Breiman 2001).
The decrease of a test is the Gini impurity of all class mass below it, times that mass, minus the same value
of its branches. A tree's decreases are added up by attribute and divided by their sum, so that all trees have
the same weight.

The importances describe these trees, not the attributes in general. Attributes with many values or thresholds
have more chances to decrease impurity by luck (Strobl et al. 2007); of two attributes with the same
information one may get all the importance; an attribute that matters only in an interaction may get little;
and part of the mass of young leaves was estimated when they were made. No records outside the training are
used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.export.outline import answering, outline
from core.layout.model import Floats
from core.model.model import Model
from core.tree.outline import TESTS, Outline


def importances(model: Model) -> dict[str, float]:
    """Return the importance of each attribute by name, in the order of the schema: shares of 1.

    All are zero while there is no test. For several trees the result is the mean over the trees that have
    tests. Background trees and alternate trees, which do not answer yet, are left out.
    """
    names = [attribute.name for attribute in model.schema.attributes]
    shares = np.zeros(len(names))
    trees = decreases(answering(outline(model)), {name: column for column, name in enumerate(names)})
    grown = trees[trees.sum(axis=1) > 0.0]
    if len(grown):
        shares = (grown / grown.sum(axis=1, keepdims=True)).mean(axis=0)
    return dict(zip(names, shares.tolist(), strict=True))


def by_importance(model: Model) -> list[tuple[str, float]]:
    """Return names and importances of the attributes, the largest first, ties in schema order."""
    return sorted(importances(model).items(), key=lambda attribute: -attribute[1])


def decreases(nodes: Sequence[Outline], columns: dict[str, int]) -> Floats:
    """Return the decrease of impurity by attribute, float64[tree, column]; nodes: parents first."""
    places = {node.number: place for place, node in enumerate(nodes)}
    below = [np.zeros(len(node.masses)) if node.children else np.array(node.masses) for node in nodes]
    for node in reversed(nodes):
        if node.parent >= 0:
            below[places[node.parent]] += below[places[node.number]]
    tree_of: list[int] = []
    roots = 0
    for node in nodes:
        parent = nodes[places[node.parent]] if node.parent >= 0 else None
        if parent is None or parent.test not in TESTS.values():  # the node above the members is no test
            tree_of.append(roots)
            roots += 1
        else:
            tree_of.append(tree_of[places[node.parent]])
    decrease = np.zeros((roots, len(columns)))
    for node, masses, tree in zip(nodes, below, tree_of, strict=True):
        if node.children and node.test in TESTS.values():
            branches = [places[child] for child in node.children]
            column = columns[nodes[branches[0]].branch.attribute]  # type: ignore[union-attr]
            impurity_below = sum(_impurity(below[place]) for place in branches)
            decrease[tree, column] += max(_impurity(masses) - impurity_below, 0.0)
    return decrease


def _impurity(masses: Floats) -> float:
    """Return Gini's impurity times the mass: the decrease that is still possible."""
    total = float(masses.sum())
    return total - float((masses * masses).sum()) / total if total > 0.0 else 0.0
