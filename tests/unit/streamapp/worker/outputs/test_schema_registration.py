"""Schema registration: a registry that refuses or is away ends the start with the subject and the remedy."""

from __future__ import annotations

import pytest

from streamapp.settings import Settings
from streamapp.worker.outputs.schema_registration import registered_schemas
from tests.registry_endpoint import Answer, RegistryEndpoint, answered, failed
from topics.definitions import TopicNames
from topics.errors import RegistryError


def settings(url: str) -> Settings:
    return Settings(output_format="avro", schema_registry_url=url)


@pytest.mark.parametrize(
    "answer",
    [
        failed(409, 409, "incompatible with version 3"),
        failed(422, 42201, "invalid"),
        failed(403, 40301, "denied"),
    ],
)
def test_a_refusal_names_subject_reason_and_remedy(answer: Answer) -> None:
    answers = {
        "subjects__grove.predictions-value__versions": answered(id=1),
        "subjects__grove.label-requests-value__versions": answer,
    }
    with RegistryEndpoint(**answers) as endpoint, pytest.raises(RegistryError) as caught:
        registered_schemas(settings(endpoint.url), TopicNames("grove."))
    message = str(caught.value)
    assert "subject grove.label-requests-value" in message
    assert f"HTTP status {answer[0]}" in message
    assert "set output.format=json" in message


def test_a_registry_that_is_away() -> None:
    with RegistryEndpoint() as gone:
        pass
    with pytest.raises(RegistryError, match=r"grove\.predictions-value.*does not answer"):
        registered_schemas(settings(gone.url), TopicNames("grove."))
