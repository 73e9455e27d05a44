"""Avro writer: values of a replay in Avro, whose schemas are registered first."""

from __future__ import annotations

from topics.codecs.avro.input_schemas import INSTANCE, LABEL, instance_schema, label_schema
from topics.codecs.compiled.encode_avro_inputs import AvroInputs
from topics.columns.records import Features
from topics.readers.dataset import Dataset
from topics.replay.emission import Register
from topics.replay.replay_plan import ReplayPlan


class AvroWriter:
    """Writes the rows of a data set by one schema."""

    def __init__(self, plan: ReplayPlan, dataset: Dataset, register: Register) -> None:
        """Register the schemas of the topics that the plan sends to. Raises RegistryError."""
        nominal = [column for column, kind in enumerate(dataset.kinds) if kind == "nominal"]
        names = dataset.names if plan.by_name else None
        self._has_labels = plan.labels == "with"
        text = instance_schema(names, nominal, has_ids=plan.ids, has_labels=self._has_labels)
        instance_id = register(plan.names.instances, INSTANCE, text)
        label_id = register(plan.names.labels, LABEL, label_schema()) if plan.labels == "apart" else 0
        width = len(dataset.names)
        self._inputs = AvroInputs(instance_id, label_id, nominal, width, by_name=plan.by_name)

    def instances(
        self, features: Features, ids: list[str] | None, labels: list[str | None] | None
    ) -> list[bytes]:
        return self._inputs.instances(features, ids, labels, has_labels=self._has_labels)

    def labels(self, ids: list[str], labels: list[str | None]) -> list[bytes]:
        return self._inputs.labels(ids, [label or "" for label in labels])
