"""Tree as a JSON document."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from core.export.importance import importances
from core.export.outline import outline
from core.model.model import Model
from core.tree.outline import Outline


def to_document(model: Model, depth: int | None = None) -> dict[str, Any]:
    """Return spec, schema, summary and importances of a model, and the nodes of its tree, parents first.

    ``thresholds`` has, by attribute name, the thresholds that the learner compares every record with.

    Below ``depth`` subtrees are left out; ``leaves_below`` is the number of leaves of each.
    """
    return {
        "spec": model.spec.to_dict(),
        "schema": json.loads(model.schema.to_json()),
        "summary": dataclasses.asdict(model.summary()),
        "importances": importances(model),
        "thresholds": {name: list(cuts) for name, cuts in model.plan.blocks.thresholds(model).items()},
        "nodes": [_node(node) for node in outline(model, depth)],
    }


def _node(node: Outline) -> dict[str, Any]:
    return {
        "node": node.number,
        "parent": None if node.parent < 0 else node.parent,
        "depth": node.depth,
        "branch": dataclasses.asdict(node.branch) if node.branch else None,
        "test": node.test,
        "children": list(node.children),
        "masses": list(node.masses),
        "majority": node.majority,
        "routed": node.routed,
        "leaves_below": node.leaves_below,
    }
