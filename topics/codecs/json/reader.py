"""JSON documents to columns of instances and labels, and to commands."""

from __future__ import annotations

from itertools import compress
from typing import Any, get_args

import numpy as np

from topics.codecs.batch import Batch
from topics.codecs.cells import ids_or, label_codes, required_ids, texts, weights
from topics.codecs.flaws import Flaw, Flaws, add_flaw, kind, malformed, outcomes, quote
from topics.codecs.json.documents import Document, members, parse
from topics.codecs.json.features import gather
from topics.codecs.lengths import check_cells, check_classes, check_features
from topics.codecs.limits import Limits
from topics.columns.records import Command, Control, Controls, Instances, Ints32, Labels, Malformed
from topics.errors import Reason

COMMANDS: tuple[Command, ...] = get_args(Command)


def read_instances(batch: Batch, limits: Limits) -> Instances:
    """Return the instances of the batch."""
    return instances_of(*parse(batch, limits.json_max_values), {}, limits)


def instances_of(
    documents: list[Document], good: Batch, bad: list[Malformed], flaws: Flaws, limits: Limits
) -> Instances:
    """Return documents as instances. `good` holds their records, `bad` the outcomes of the other records,
    `flaws` those of documents that are bad already.
    """
    instances = _instances(documents, good, flaws, bad)
    check_cells("an id", instances.ids, limits.text_max_bytes, flaws)
    check_classes(instances.label_values, instances.label, limits, flaws)
    check_features(instances.features, limits.text_max_bytes, limits.features_max, flaws)
    if not flaws:
        return instances
    # Flaws are rare. A row is bad by its own content alone, so a second pass finds no further flaws.
    bad = bad + outcomes(good.record, flaws)
    rest, mask = good.without(flaws)
    return _instances(list(compress(documents, mask)), rest, {}, bad)


def _instances(documents: list[Document], batch: Batch, flaws: Flaws, bad: list[Malformed]) -> Instances:
    n, member = len(documents), members(documents)
    features = gather(member("features"), flaws)
    label_values, label = label_codes(member("label"), flaws)
    return Instances(
        record=batch.record,
        row=np.zeros(n, dtype=np.int32),
        keys=batch.keys,
        key=batch.key,
        ids=ids_or(member("id"), batch.default_ids, flaws),
        label_values=label_values,
        label=label,
        weight=weights(member("weight"), flaws),
        features=features,
        blocks=np.empty((0, 3), dtype=np.int32),
        malformed=bad,
    )


def read_labels(batch: Batch, limits: Limits) -> Labels:
    """Return the labels of the batch."""
    return labels_of(*parse(batch, limits.json_max_values), {}, limits)


def labels_of(
    documents: list[Document], good: Batch, bad: list[Malformed], flaws: Flaws, limits: Limits
) -> Labels:
    """Return documents as labels; the parameters are those of `instances_of`."""
    labels = _labels(documents, good, flaws, bad)
    check_cells("an id", labels.ids, limits.text_max_bytes, flaws)
    check_cells("an annotator", labels.annotators, limits.text_max_bytes, flaws)
    check_classes(labels.label_values, labels.label, limits, flaws)
    check_features(labels.features, limits.text_max_bytes, limits.features_max, flaws)
    if not flaws:
        return labels
    bad = bad + outcomes(good.record, flaws)
    rest, mask = good.without(flaws)
    return _labels(list(compress(documents, mask)), rest, {}, bad)


def _labels(documents: list[Document], batch: Batch, flaws: Flaws, bad: list[Malformed]) -> Labels:
    member = members(documents)
    ids = required_ids(member("id"), flaws)
    label_values, label = label_codes(member("label"), flaws)
    _check_declined(member("declined"), label, flaws)
    return Labels(
        record=batch.record,
        row=np.zeros(len(documents), dtype=np.int32),
        keys=batch.keys,
        key=batch.key,
        ids=ids,
        label_values=label_values,
        label=label,
        weight=weights(member("weight"), flaws),
        annotators=texts("annotator", member("annotator"), flaws),
        features=gather(member("features"), flaws, optional=True),
        malformed=bad,
    )


def _check_declined(declined: list[Any], label: Ints32, flaws: Flaws) -> None:
    """Note the rows that are neither a label nor declined, or both."""
    if not any(declined) and (label >= 0).all():
        return
    for row, cell in enumerate(declined):
        if cell is not None and type(cell) is not bool:
            add_flaw(
                flaws, [row], Flaw(Reason.WRONG_TYPE, f"declined must be true or false; got {kind(cell)}")
            )
        elif cell and label[row] >= 0:
            add_flaw(flaws, [row], Flaw(Reason.WRONG_TYPE, "a declined label must not carry a label"))
        elif not cell and label[row] < 0:
            add_flaw(flaws, [row], Flaw(Reason.MISSING_FIELD, "label is missing, and declined is not true"))


def read_controls(batch: Batch, limits: Limits) -> Controls:
    """Return the commands of the batch; the task checks their members."""
    return controls_of(*parse(batch, limits.control_max_values))


def controls_of(documents: list[Document], good: Batch, bad: list[Malformed]) -> Controls:
    """Return documents as commands; the parameters are those of `instances_of`."""
    items: list[Control] = []
    for row, document in enumerate(documents):
        record = int(good.record[row])
        command = document.get("command")
        if command in COMMANDS:
            body = {name: value for name, value in document.items() if name != "command"}
            items.append(Control(record, good.keys[good.key[row]], command, body))
        else:
            bad.append(malformed(record, _command_flaw(command)))
    return Controls(items, sorted(bad, key=lambda each: each.record))


def _command_flaw(command: object) -> Flaw:
    if command is None:
        return Flaw(Reason.MISSING_FIELD, f"command is missing; known: {', '.join(COMMANDS)}")
    if not isinstance(command, str):
        return Flaw(Reason.WRONG_TYPE, f"command must be a string; got {kind(command)}")
    return Flaw(Reason.UNKNOWN_COMMAND, f"command {quote(command)} is unknown; known: {', '.join(COMMANDS)}")
