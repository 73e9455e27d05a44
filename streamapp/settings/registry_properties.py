"""Properties of the schema registry from settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pydantic import SecretStr

from streamapp.settings.spellings import REGISTRY_SETTINGS


class RegistryValues(Protocol):
    """The settings that access to a registry depends on; `REGISTRY_SETTINGS` lists the others."""

    @property
    def kafka(self) -> Mapping[str, str | SecretStr]: ...


def registry_properties(settings: RegistryValues) -> dict[str, str]:
    """Return the properties that are set, under the names of Confluent's clients; secrets are in clear."""
    properties = {}
    for attribute in REGISTRY_SETTINGS:
        value = getattr(settings, attribute)
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if text:
            properties[attribute.replace("_", ".")] = str(text)
    return properties
