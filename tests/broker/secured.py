"""An embedded broker with users and access control: what is not allowed is denied."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from streamapp.embedded import EmbeddedBroker
from streamapp.embedded import broker as embedded
from streamapp.embedded.broker import free_ports
from streamapp.embedded.configuration import server_properties
from tests.broker.workers import PATIENCE

USER, PASSWORD = "grove", "secret"


class SecuredBroker:
    """Two listeners: one whose clients may do everything, and one for USER, who may do nothing."""

    def __init__(self, broker: EmbeddedBroker, clients: str) -> None:
        self.bootstrap_servers = broker.bootstrap_servers
        self.clients = clients  # address for USER
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

    @property
    def settings(self) -> dict[str, str]:
        """Environment of a command of USER."""
        return {
            "GROVE_KAFKA_BOOTSTRAP_SERVERS": self.clients,
            "GROVE_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "GROVE_KAFKA_SASL_MECHANISM": "PLAIN",
            "GROVE_KAFKA_SASL_USERNAME": USER,
            "GROVE_KAFKA_SASL_PASSWORD": PASSWORD,
        }

    def allow(self, kind: ResourceType, name: str, *operations: AclOperation) -> None:
        """Let USER do something with a resource, or with all whose names begin so (`prefix*`)."""
        pattern = ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL
        rules = [
            AclBinding(
                kind, name.rstrip("*"), pattern, f"User:{USER}", "*", operation, AclPermissionType.ALLOW
            )
            for operation in operations
        ]
        for done in self._admin.create_acls(rules).values():
            done.result(PATIENCE)


@contextmanager
def secured_broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[SecuredBroker]:
    """A broker that knows USER."""
    plain, port = server_properties, free_ports(1)

    def secured(data: Path, own: int, controller: int) -> str:
        more = {
            "listeners": f"PLAINTEXT://127.0.0.1:{own},CLIENTS://127.0.0.1:{port},"
            f"CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{own},CLIENTS://127.0.0.1:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "CLIENTS:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain."
            f'PlainLoginModule required user_{USER}="{PASSWORD}";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        # The last line of a name is the one that counts.
        return plain(data, own, controller) + "".join(f"{name}={value}\n" for name, value in more.items())

    monkeypatch.setattr(embedded, "server_properties", secured)
    with EmbeddedBroker(brief=True) as broker:
        yield SecuredBroker(broker, f"127.0.0.1:{port}")
