"""A schema registry for a measurement of Avro, and the settings by which a worker uses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from benchmarks.rig.encoding import ANSWER_ID, AVRO_ID, AVRO_SCHEMA
from streamapp.embedded.apicurio import EmbeddedRegistry
from topics.codecs.avro.output_schemas import current
from topics.registry.client import Registry
from topics.registry.registry_access import registry_access


@contextmanager
def registered(form: str) -> Iterator[Mapping[str, str]]:
    """Yield the worker's settings for a format; for Avro a new registry runs meanwhile."""
    if form != "avro":
        yield {}
        return
    with EmbeddedRegistry() as registry:
        access = registry_access({"schema.registry.url": registry.url})
        assert access is not None
        schemas = {"benchmark-value": AVRO_SCHEMA, "benchmark-answers-value": current("prediction")}
        ids = [Registry(access).register(subject, "AVRO", text) for subject, text in schemas.items()]
        assert ids == [AVRO_ID, ANSWER_ID], f"a new registry gives the ids {ids}"
        yield {"GROVE_SCHEMA_REGISTRY_URL": registry.url, "GROVE_OUTPUT_FORMAT": "avro"}
