"""Model answers: a model at the committed offsets, paths in its tree, explanations, and comparisons."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from core import export
from core.measures.named_measures import CLASS_FIGURES, defined, named
from core.model.model import Model
from core.model.prediction import Cell
from core.tree.outline import Outline
from streamapp.errors import UsageError
from streamapp.tools.model_files.model_origins import taken_from
from streamapp.tools.offline.audit import audit
from streamapp.tools.offline.installation import Installation
from streamapp.tools.offline.model_differences import differences
from streamapp.tools.offline.place import Place
from streamapp.worker.task.models.files.exported import ExportedModel, read_exported
from topics.codecs import decode_instances
from topics.columns.records import Instances

NODES_MAX: Final = 4000
"""Nodes of a drawing, at most; a larger tree is cut at the depth that fits."""
WEIGHTS_MAX: Final = 400_000
"""Class weights of all nodes of a drawing, at most: with many classes fewer nodes are drawn."""
ATTRIBUTES_MAX: Final = 500
"""Attributes that are listed, at most."""
DIFFERENCES_MAX: Final = 500
TITLES: Final = {
    "accuracy": "accuracy_powered",
    "kappa": "kappa_unbiased",
    "balanced accuracy": "balanced_accuracy",
    "log-loss": "log_loss",
    "Brier score": "brier",
    "AUC": "auc",
    "calibration error": "calibration_error",
    "coverage of the sets": "coverage",
    "classes in a set": "set_size",
}
"""The measures of a model by their titles."""
CLASSES_MAX: Final = 20
"""Classes whose measures are listed, at most."""
IMPORTANCES_MAX: Final = 20
"""Attributes whose importance is listed, at most: the most important."""


class ModelAnswers:
    """Models of an installation, rebuilt from snapshots and journal as for `grove models show`."""

    def __init__(self, place: Installation) -> None:
        self._place = place
        self._drawn: tuple[str, ExportedModel] | None = None
        """The model that was drawn last: the paths of records belong to its tree."""

    def model(self, key: str) -> dict[str, Any]:
        """Return a model with the nodes of its tree; OfflineError if the key has no model."""
        exported = self._taken(key)
        self._drawn = key, exported
        return document(exported)

    def path(self, key: str, at: str | None = None, features: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer of a model to a record, and the conditions on the path of the record in its tree.

        at: place of the record in instances, PARTITION:OFFSET. features: the record itself. The model is the
        one that was drawn last, if it has the same key. UsageError if there is no such record.
        """
        if self._drawn is None or self._drawn[0] != key:
            self._drawn = key, self._taken(key)
        model = self._drawn[1].model
        record = self._record(at, key, model) if at is not None else checked_features(features or {})
        answer = model.predict(record)
        return {
            "label": answer.label,
            "probabilities": answer.probabilities,
            "version": answer.version,
            "conditions": [str(branch) for branch in answer.explanation],
            "features": record,
        }

    def explanation(self, key: str, at: str) -> dict[str, Any]:
        """Return the answer to the record of instances at `PARTITION:OFFSET`, and its explanation."""
        place = Place.parse(at)
        with self._place.partition(place.partition) as stored:
            return audit(stored, key, place, after=False, prefix=self._place.names.prefix).document

    def differences(self, first: str, second: str) -> list[dict[str, Any]]:
        """Return the differences between the models of two keys."""
        models = [self._taken(key).model for key in (first, second)]
        return [difference._asdict() for difference in differences(*models)[:DIFFERENCES_MAX]]

    def _record(self, at: str, key: str, model: Model) -> dict[str, Cell]:
        """Return the features of the first instance in the record at PARTITION:OFFSET."""
        place = Place.parse(at)
        with self._place.partition(place.partition) as stored:
            raw = stored.instance(place.offset)
        if raw is None:
            message = f"record={at!r} must be a record of instances: there is none at this offset"
            raise UsageError(message)
        if raw.keys[0] != key.encode():
            other = (raw.keys[0] or b"").decode("utf-8", "replace")
            message = f"record={at!r} must be of the model {key!r}; it is of the model {other!r}"
            raise UsageError(message)
        return first_record(decode_instances(raw, self._place.config.limits), model.schema.names, at)

    def _taken(self, key: str) -> ExportedModel:
        return read_exported(taken_from(self._place, key))


def document(exported: ExportedModel) -> dict[str, Any]:
    """Return the content of a page on a model."""
    model = exported.model
    nodes = drawn(model)
    schema = model.schema
    return {
        "key": exported.key,
        "taken": exported.taken,
        "frozen": exported.frozen,
        "spec": model.spec.to_dict(),
        "classes": list(schema.classes),
        "attributes": [[attribute.name, attribute.kind] for attribute in schema.attributes[:ATTRIBUTES_MAX]],
        "attributes_left_out": max(0, len(schema.attributes) - ATTRIBUTES_MAX),
        "summary": dataclasses.asdict(model.summary()),
        "bytes": model.nbytes,
        "measures": measured(model),
        "challenge": exported.challenge,
        "curve": learned(model),
        "nodes": node_rows(nodes),
        "importances": most_important(model),
        "cut": any(node.leaves_below for node in nodes),
    }


def first_record(instances: Instances, names: Sequence[str], at: str) -> dict[str, Cell]:
    """Return the features of the first row; names: of the model's attributes, for features by position."""
    if not len(instances):
        reason = instances.malformed[0].detail if instances.malformed else "it has no instance"
        message = f"record={at!r} must be an instance: {reason}"
        raise UsageError(message)
    for features in instances.features:
        if 0 in features.rows:
            row = int(np.searchsorted(features.rows, 0))
            record: dict[str, Cell] = {}
            for column, name in enumerate(features.names or names):
                strings = features.strings.get(column)
                text = None if strings is None else strings[row]
                number = float(features.values[row, column])
                record[name] = text if text is not None else None if math.isnan(number) else number
            return record
    return {}


def checked_features(features: dict[str, Any]) -> dict[str, Cell]:
    """Return typed features; UsageError if a value is no number, text or null."""
    for name, value in features.items():
        if not isinstance(value, int | float | str | None):
            message = f"{name}={value!r} must be a number, a text or null: a feature has one value"
            raise UsageError(message)
    return features


def measured(model: Model) -> dict[str, Any] | None:
    """Return the measures per class, those of the classes with most labels; None: they are not kept."""
    measures = model.measures()
    if measures is None:
        return None
    codes = range(len(measures.classes))
    most = sorted(codes, key=lambda code: (-measures.classes[code].labels, code))[:CLASSES_MAX]
    sets = model.coverage()
    figures = named(measures, model.schema.classes, most) | ({} if sets is None else sets.to_dict())
    members: dict[str, Any] = dict.fromkeys(TITLES.values()) | defined(figures)
    return members


def measure_lines(measures: dict[str, Any] | None) -> list[str]:
    """Return lines for people: the measures of the model, and those of each class; empty without labels."""
    if measures is None or measures["kappa_unbiased"] is None:
        return []
    lines = [f"measures of all {measures['measured']}, with 95 % intervals:"]
    for title, name in TITLES.items():
        lines += [f"  {title:18} {_interval(measures, name)}"] if measures[name] is not None else []
    for name, figures in measures["per_class"].items():
        parts = (
            f"{title} {_interval(figures, title)}" for title in CLASS_FIGURES if figures[title] is not None
        )
        lines += [f"  class {name!r}: {', '.join(parts)}"]
    return lines


def challenge_lines(challenge: dict[str, Any] | None) -> list[str]:
    """Return lines for people about the comparison with a challenger; empty without one."""
    if challenge is None:
        return []
    text = f"{challenge['disagreements']:,} of {challenge['records']:,} answers differ, "
    text += f"{challenge['labels']:,} labels compared"
    if challenge["difference"] is not None:
        low, high = challenge["low"], challenge["high"]
        text += f", difference {challenge['difference']:+.4f} ({low:+.4f} to {high:+.4f})"
    return [f"challenger {challenge['learner']}: {text}, {challenge['decision']}"]


def learned(model: Model) -> dict[str, Any] | None:
    """Return the learning curve, its forecast and the advice; None: the model keeps no curve."""
    curve = model.learning_curve()
    members: dict[str, Any] | None = None if curve is None else defined(curve.to_dict())
    return members


def curve_lines(curve: dict[str, Any] | None) -> list[str]:
    """Return lines for people: the advice, and what 500 more labels buy; empty without an advice."""
    if curve is None or curve["advice"] is None:
        return []
    lines = [f"labels: {curve['advice']}"]
    if curve["gain_forecast"] is not None:
        gain, then = _interval(curve, "gain_forecast"), _interval(curve, "accuracy_forecast")
        lines += [f"  500 more labels: accuracy {then}, gain {gain}, with bands of 90 %"]
    return lines


def _interval(figures: dict[str, Any], name: str) -> str:
    low, high = figures.get(f"{name}_low"), figures.get(f"{name}_high")
    ends = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
    return f"{figures[name]:.3f}{ends}"


def most_important(model: Model) -> list[tuple[str, float]]:
    """Return the most important attributes with an importance above 0 (core/export/importance.py)."""
    return [(name, share) for name, share in export.by_importance(model)[:IMPORTANCES_MAX] if share > 0.0]


def drawn(model: Model) -> list[Outline]:
    """Return the nodes of the tree or, if there are too many to draw, its upper levels.

    Alternate trees are left out, so that numbers add up from the leaves to the root.
    """
    nodes = export.answering(export.outline(model))
    most = min(NODES_MAX, max(1, WEIGHTS_MAX // max(1, model.schema.n_classes)))
    if len(nodes) <= most:
        return nodes
    at_depth = Counter(node.depth for node in nodes)
    depth, drawn_nodes = 0, at_depth[0]
    while drawn_nodes + at_depth[depth + 1] <= most:
        depth += 1
        drawn_nodes += at_depth[depth]
    return export.answering(export.outline(model, depth))


def node_rows(nodes: Sequence[Outline]) -> list[dict[str, Any]]:
    """Return a row for each node, parents first, with numbers that add up from the leaves to the root.

    records: weight of the records that came through the node.
    own: weight of the records before the node was split; with the records of its children they are the
    node's.
    masses: class weights of the leaves below, of which purity and, for inner nodes, the majority are made.
    attribute, value: the test's attribute, and its threshold or category; None: a leaf, or a node whose
    children are cut.
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
