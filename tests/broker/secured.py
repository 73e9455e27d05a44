"""An embedded broker behind TLS, with users (SCRAM-SHA-512) and ACLs: what is not allowed is denied."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
import trustme
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives import serialization

from streamapp.embedded import EmbeddedBroker
from streamapp.embedded import broker as embedded
from streamapp.embedded.configuration import Membership, server_properties
from streamapp.worker.reserved_ports import free_ports
from tests.broker.workers import PATIENCE, wait_until

USER, PASSWORD = "grove", "secret"
SCRAM: Mapping[str, object] = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
}
"""Properties of a listener whose users have passwords."""

ITERATIONS = 4096  # the least that Kafka takes
EVERYTHING = AclBindingFilter(
    ResourceType.ANY,
    None,  # type: ignore[arg-type] # any name, user and host: the annotations are stricter than the client
    ResourcePatternType.ANY,
    None,  # type: ignore[arg-type]
    None,  # type: ignore[arg-type]
    AclOperation.ANY,
    AclPermissionType.ANY,
)


class SecuredBroker:
    """Two listeners: one whose clients may do everything, and one for users, who may do what is granted."""

    def __init__(self, broker: EmbeddedBroker, clients: str, authority: Path) -> None:
        self.bootstrap_servers = broker.bootstrap_servers
        self.log_file = broker.log_file
        self.clients = clients  # address for users
        self.authority = authority
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        self.add_users([USER])
        wait_until(self._lets_in, PATIENCE, lambda: f"{clients} does not let {USER} in")

    def add_users(self, users: Iterable[str]) -> None:
        how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
        alterations: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, how, PASSWORD.encode()) for user in users
        ]
        for done in self._admin.alter_user_scram_credentials(alterations).values():
            done.result(PATIENCE)

    def _lets_in(self) -> bool:
        """Whether a user is known by now, and the listener answers; commands wait for seconds only."""
        client = AdminClient(properties_of(self.settings) | {"log_level": 0})
        try:
            return bool(client.list_topics(timeout=5).brokers)
        except KafkaException:
            return False

    @property
    def settings(self) -> dict[str, str]:
        """Environment of a command of USER."""
        return self.settings_of(USER)

    def settings_of(self, user: str) -> dict[str, str]:
        """Environment of a command of a user."""
        return {
            "GROVE_KAFKA_BOOTSTRAP_SERVERS": self.clients,
            "GROVE_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "GROVE_KAFKA_SSL_CA_LOCATION": str(self.authority),
            "GROVE_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
            "GROVE_KAFKA_SASL_USERNAME": user,
            "GROVE_KAFKA_SASL_PASSWORD": PASSWORD,
        }

    def allow(self, kind: ResourceType, name: str, *operations: AclOperation, user: str = USER) -> None:
        """Let a user do something with a resource, or with all whose names begin so (`prefix*`)."""
        pattern = ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL
        self.grant(
            [
                AclBinding(
                    kind, name.rstrip("*"), pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW
                )
                for operation in operations
            ]
        )

    def grant(self, rules: Sequence[AclBinding]) -> None:
        """Return when the broker decides by these rules: it takes them over after its controller."""
        for done in self._admin.create_acls(list(rules)).values():
            done.result(PATIENCE)
        wait_until(lambda: self._rules() >= set(rules), PATIENCE, lambda: f"{self._rules()}")

    def revoke_everything(self) -> None:
        """Take every right of every user; return when the broker has taken it."""
        for done in self._admin.delete_acls([EVERYTHING]).values():
            done.result(PATIENCE)
        wait_until(lambda: not self._rules(), PATIENCE, lambda: f"{self._rules()}")

    def _rules(self) -> set[AclBinding]:
        """The rules by which the broker decides now."""
        return set(self._admin.describe_acls(EVERYTHING).result(PATIENCE))


Kind = TypeVar("Kind", bound=SecuredBroker)


def properties_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a client that an environment sets."""
    names = {name: name.removeprefix("GROVE_KAFKA_").lower().replace("_", ".") for name in settings}
    return {names[name]: value for name, value in settings.items()}


@contextmanager
def secured_broker(monkeypatch: pytest.MonkeyPatch, directory: Path) -> Iterator[SecuredBroker]:
    """A broker that knows USER; its certificates lie in `directory`."""
    with broker_behind_tls(monkeypatch, directory, SecuredBroker, SCRAM) as broker:
        yield broker


@contextmanager
def broker_behind_tls(
    monkeypatch: pytest.MonkeyPatch,
    directory: Path,
    kind: type[Kind],
    listener: Mapping[str, object],
) -> Iterator[Kind]:
    """A broker with certificates in `directory`; listener: properties of the one for users."""
    plain, port = server_properties, free_ports()
    authority, identity = certificates(directory)

    def secured(data: Path, member: Membership) -> str:
        own, controller = member.ports
        more = {
            "listeners": f"PLAINTEXT://127.0.0.1:{own},CLIENTS://127.0.0.1:{port},"
            f"CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{own},CLIENTS://127.0.0.1:{port},"
            f"CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,CLIENTS:SASL_SSL",
            "sasl.enabled.mechanisms": listener["sasl.enabled.mechanisms"],
            **{f"listener.name.clients.{name}": value for name, value in listener.items()},
            "listener.name.clients.ssl.keystore.type": "PEM",
            "listener.name.clients.ssl.keystore.location": identity,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        # The last line of a name is the one that counts.
        return plain(data, member) + "".join(f"{name}={value}\n" for name, value in more.items())

    monkeypatch.setattr(embedded, "server_properties", secured)
    with EmbeddedBroker(brief=True) as broker:
        yield kind(broker, f"127.0.0.1:{port}", authority)


def certificates(directory: Path) -> tuple[Path, Path]:
    """Make an authority and a broker's certificate with its key; return where they lie (PEM)."""
    made = trustme.CA()
    broker = made.issue_cert("127.0.0.1", "localhost")
    authority, identity = directory / "authority.pem", directory / "broker.pem"
    made.cert_pem.write_to_path(authority)
    # Java reads keys in PKCS #8 only.
    key = serialization.load_pem_private_key(broker.private_key_pem.bytes(), None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    identity.write_bytes(key + b"".join(pem.bytes() for pem in broker.cert_chain_pems))
    return authority, identity
