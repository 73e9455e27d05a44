"""Makes sklearn_trees.json: unpruned entropy trees of scikit-learn 1.9, which is no dependency of ours.

Values are multiples of 1/1024, because scikit-learn keeps them in float32; a node is split only if that gains
anything, which is our rule.

    python tests/golden/sklearn_trees.py    (where scikit-learn is installed)
"""

import json
from pathlib import Path
from typing import Any

import numpy as np


def nested(tree: Any, classes: int, node: int = 0) -> Any:
    if tree.children_left[node] < 0:
        counts = tree.value[node, 0] * tree.n_node_samples[node]
        return [round(float(c)) for c in counts] + [0] * (classes - tree.value.shape[2])
    sides = (tree.children_left[node], tree.children_right[node])
    return [int(tree.feature[node]), float(tree.threshold[node]), *(nested(tree, classes, s) for s in sides)]


def case(seed: int, n: int, d: int, classes: int, least: int, depth: int | None) -> dict[str, Any]:
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=(n, d)) * 1024) / 1024
    score = x[:, 0] + 0.5 * x[:, -1] + rng.normal(size=n) * 0.7
    y = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    made = DecisionTreeClassifier(
        criterion="entropy",
        min_samples_leaf=least,
        max_depth=depth,
        min_impurity_decrease=1e-9,
        random_state=0,
    ).fit(x, y)
    return {
        "x": x.tolist(),
        "y": y.tolist(),
        "min_samples_leaf": least,
        "max_depth": depth,
        "tree": nested(made.tree_, classes),
    }


if __name__ == "__main__":
    cases = [
        case(1, 120, 1, 2, 2, None),
        case(2, 120, 1, 3, 1, None),
        case(3, 80, 1, 4, 5, None),
        case(4, 300, 5, 2, 2, 3),
        case(5, 300, 4, 3, 2, 3),
    ]
    Path(__file__).with_suffix(".json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")
