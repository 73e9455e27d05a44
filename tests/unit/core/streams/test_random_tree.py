"""Random tree: MOA's trees and first records, and what a tree is."""

import numpy as np
import pytest

from core.streams.random_tree import LEAF, Plugin

VFS = {"classes": 25, "nominal": 200, "numeric": 200}


@pytest.mark.parametrize(
    ("options", "leaves", "inner", "root", "classes"),
    [({}, 277, 129, 5, [0, 1, 1, 0, 1]), (VFS, 440, 187, 185, [18, 5, 22, 5, 15])],
    ids=["defaults", "VFS"],
)
def test_the_trees_of_java(options, leaves, inner, root, classes):
    generator = Plugin(rng="java", **options)
    attribute = generator.concept().attribute
    assert np.count_nonzero(attribute == LEAF) == leaves
    assert np.count_nonzero(attribute != LEAF) == inner
    assert attribute[0] == root
    assert generator.take(5)[1].tolist() == classes


def paths(generator):
    """Yield every node with the tests above it, as (node, [(attribute, branch, threshold)])."""
    tree = generator.concept()
    stack: list[tuple[int, list[tuple[int, int, float]]]] = [(0, [])]
    while stack:
        node, above = stack.pop()
        yield node, above
        attribute = int(tree.attribute[node])
        if attribute != LEAF:
            branches = generator.values if attribute < generator.nominal else 2
            for branch in range(branches):
                below = int(tree.children[tree.child[node] + branch])
                stack.append((below, [*above, (attribute, branch, float(tree.threshold[node]))]))


@pytest.mark.parametrize("flavour", ["counter", "java"])
@pytest.mark.parametrize("model_seed", [1, 2, 3])
def test_what_a_tree_keeps(flavour, model_seed):
    generator = Plugin(rng=flavour, model_seed=model_seed, nominal=3, numeric=2, depth=6)
    tree, paths_of = generator.concept(), list(paths(generator))
    assert sorted(node for node, _ in paths_of) == list(range(len(tree.attribute)))
    for node, above in paths_of:
        nominal = [attribute for attribute, _, _ in above if attribute < generator.nominal]
        assert len(nominal) == len(set(nominal))
        low, high = dict.fromkeys((3, 4), 0.0), dict.fromkeys((3, 4), 1.0)
        for attribute, branch, cut in above:
            if attribute >= generator.nominal:
                assert low[attribute] <= cut < high[attribute]
                (low if branch else high)[attribute] = cut
        if tree.attribute[node] == LEAF:
            assert generator.first_leaf_level <= len(above) <= generator.depth
            assert 0 <= tree.child[node] < generator.classes


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_a_record_has_the_class_of_its_leaf(flavour):
    generator = Plugin(rng=flavour, classes=7)
    tree, leaves = generator.concept(), {}
    for node, above in paths(generator):
        if tree.attribute[node] == LEAF:
            leaves[node] = above
    x, y = generator.take(200)
    for record, label in zip(x, y, strict=True):
        reached = [
            node
            for node, above in leaves.items()
            if all(
                record[a] == branch if a < generator.nominal else (record[a] >= cut) == bool(branch)
                for a, branch, cut in above
            )
        ]
        assert [int(tree.child[node]) for node in reached] == [label]


def test_a_tree_may_be_a_leaf_alone():
    assert set(Plugin(depth=0).take(50)[1].tolist()) == {int(Plugin(depth=0).concept().child[0])}
    assert Plugin(nominal=0, numeric=0).concept().attribute.tolist() == [LEAF]


def test_the_model_seed_makes_the_tree_and_the_seed_the_records():
    one, two = Plugin(seed=1), Plugin(seed=2)
    assert np.array_equal(one.concept().threshold, two.concept().threshold)
    assert not np.array_equal(one.take(5)[0], two.take(5)[0])
    assert not np.array_equal(one.concept().attribute, Plugin(model_seed=2).concept().attribute)
