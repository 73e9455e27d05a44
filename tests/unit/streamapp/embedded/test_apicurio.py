"""The embedded schema registry without its program: mistakes that are noticed before it starts."""

from __future__ import annotations

import pytest

from streamapp.embedded.apicurio import EmbeddedRegistry
from streamapp.errors import EmbeddedRegistryError
from tests.registry_endpoint import RegistryEndpoint


def test_a_port_of_another_registry_is_not_taken_for_its_own() -> None:
    with RegistryEndpoint(apis__ccompat__v7__schemas__types=(200, b'["AVRO"]')) as other:
        port = other.server_address[1]
        with (
            pytest.raises(EmbeddedRegistryError, match=f"port {port} .*already in use"),
            EmbeddedRegistry(port),
        ):
            pass
        assert other.requests == []
