"""Model answers: a model at the committed offsets, why a record was answered so, what two differ in."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from core import export
from core.model.model import Model
from core.tree.outline import Outline
from streamapp.tools.model_files.sources import taken_from
from streamapp.tools.offline.audit import audit
from streamapp.tools.offline.differences import differences
from streamapp.tools.offline.installation import Installation
from streamapp.tools.offline.place import Place
from streamapp.worker.task.models.exported import ExportedModel, read_exported

NODES_MAX: Final = 1500
"""Nodes of a drawing; a larger tree is cut at the depth that leaves so many."""
ATTRIBUTES_MAX: Final = 500
"""Attributes that are named."""
DIFFERENCES_MAX: Final = 500
IMPORTANCES_MAX: Final = 20
"""Attributes whose importance is listed: those with most of it."""


class ModelAnswers:
    """Models of an installation, read from snapshots and journal as `grove models show` reads them."""

    def __init__(self, place: Installation) -> None:
        self._place = place

    def model(self, key: str) -> dict[str, Any]:
        """Return a model with the nodes of its tree; OfflineError if there is none of the key."""
        return document(self._taken(key))

    def explanation(self, key: str, at: str) -> dict[str, Any]:
        """Return what the record of instances at `PARTITION:OFFSET` was answered, and why."""
        place = Place.parse(at)
        with self._place.partition(place.partition) as stored:
            return audit(stored, key, place, after=False, prefix=self._place.names.prefix).document

    def differences(self, first: str, second: str) -> list[dict[str, Any]]:
        """Return what the models of two keys differ in."""
        models = [self._taken(key).model for key in (first, second)]
        return [each._asdict() for each in differences(*models)[:DIFFERENCES_MAX]]

    def _taken(self, key: str) -> ExportedModel:
        return read_exported(taken_from(self._place, key))


def document(exported: ExportedModel) -> dict[str, Any]:
    """Return what a page shows of a model."""
    model = exported.model
    nodes = drawn(model)
    schema = model.schema
    return {
        "key": exported.key,
        "taken": exported.taken,
        "frozen": exported.frozen,
        "spec": model.spec.to_dict(),
        "classes": list(schema.classes),
        "attributes": [[each.name, each.kind] for each in schema.attributes[:ATTRIBUTES_MAX]],
        "attributes_left_out": max(0, len(schema.attributes) - ATTRIBUTES_MAX),
        "summary": dataclasses.asdict(model.summary()),
        "bytes": model.nbytes,
        "nodes": node_rows(nodes),
        "importances": most_important(model),
        "cut": any(node.leaves_below for node in nodes),
    }


def most_important(model: Model) -> list[tuple[str, float]]:
    """Return the attributes with most importance (core/export/importance.py), none that has nothing of it."""
    return [(name, share) for name, share in export.by_importance(model)[:IMPORTANCES_MAX] if share > 0.0]


def drawn(model: Model) -> list[Outline]:
    """Return the nodes of the tree, or, if there are too many to draw, those down to some depth.

    Without alternate trees: numbers add up from the leaves to the root.
    """
    nodes = export.answering(export.outline(model))
    if len(nodes) <= NODES_MAX:
        return nodes
    depth = max(node.depth for node in nodes)
    while depth > 0 and sum(node.depth <= depth for node in nodes) > NODES_MAX:
        depth -= 1
    return export.answering(export.outline(model, depth))


def node_rows(nodes: Sequence[Outline]) -> list[dict[str, Any]]:
    """Return a row for each node, parents first, with numbers that add up from the leaves to the root.

    records: weight of the records that came through; own: of those that came before the node was split, so
    that own and the children's records are the node's. masses: class weight of the leaves below, which
    purity and, of inner nodes, the majority go by. attribute,
    value: of the test, threshold or category; None: a leaf, or cut off.
    """
    places = {node.number: at for at, node in enumerate(nodes)}
    masses = [list(node.masses) for node in nodes]
    for node in nodes:
        if node.children:
            masses[places[node.number]] = [0.0] * len(node.masses)
    for node in reversed(nodes):
        if node.parent >= 0:
            above = masses[places[node.parent]]
            for code, mass in enumerate(masses[places[node.number]]):
                above[code] += mass
    rows = []
    for node, below in zip(nodes, masses, strict=True):
        came_on = sum(nodes[places[child]].routed for child in node.children)
        total = sum(below)
        test = nodes[places[node.children[0]]].branch if node.children else None
        rows.append(
            {
                "node": node.number,
                "parent": None if node.parent < 0 else node.parent,
                "depth": node.depth,
                "branch": str(node.branch) if node.branch else None,
                "test": node.test,
                "attribute": None if test is None else test.attribute,
                "value": None if test is None else test.value,
                "children": list(node.children),
                "records": node.routed,
                "own": node.routed - came_on if node.children else node.routed,
                "masses": below,
                "purity": max(below) / total if total else None,
                "majority": below.index(max(below)) if node.children and total else node.majority,
                "leaves_below": node.leaves_below,
            }
        )
    return rows
