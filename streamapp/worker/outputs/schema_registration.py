"""Schema registration: the schemas of the outputs, under their subjects, before a worker writes them."""

from __future__ import annotations

from collections.abc import Mapping

from streamapp.settings import Settings
from streamapp.settings.clients import registry_of
from topics.codecs.avro.output_schemas import OUTPUTS, Output, current, output_schema
from topics.definitions import TopicNames
from topics.errors import RegistryError
from topics.registry.subject_names import subject_name

SchemaIds = Mapping[Output, int]


def registered_schemas(settings: Settings, names: TopicNames) -> SchemaIds | None:
    """Return the ids of the output schemas; None if outputs are not written in Avro.

    Raises RegistryError, which names subject and remedy, if the registry does not answer, or refuses a
    schema: it does not fit the versions of its subject, or the worker has no right to register it.
    """
    registry = registry_of(settings) if settings.output_format == "avro" else None
    if registry is None:
        return None
    topics: Mapping[Output, str] = {
        "prediction": names.predictions,
        "label-request": names.label_requests,
        "drift-alert": names.drift_alerts,
        "evaluation": names.evaluations,
    }
    strategy = settings.value_subject_name_strategy
    ids: dict[Output, int] = {}
    for output in OUTPUTS:
        subject = subject_name(strategy, topics[output], output_schema(output).root["name"])
        try:
            ids[output] = registry.register(subject, "AVRO", current(output))
        except RegistryError as error:
            message = (
                f"output.format=avro needs subject {subject} with the schema of {output}-v*.avsc: {error}; "
                f"register it there, give this worker the right to, or set output.format=json"
            )
            raise RegistryError(message) from error
    return ids
