"""Access: the error text when a broker denies this client something, with the right to grant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import KafkaError

from topics.tokens.sign_in import source_in
from topics.tokens.token_source import TokenSource

Kind = Literal["topic", "group", "cluster", "transactional-id"]

_KINDS: Mapping[int, Kind] = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
}


def denied_kind(code: int) -> Kind | None:
    """Return the kind of thing to which an error code denies access; None for other errors."""
    return _KINDS.get(code)


@dataclass(frozen=True, slots=True)
class Access:
    """The identity of this client at the broker."""

    name: str | None
    """None: a token holds it, or only the broker can tell (a certificate's user, or anonymous)."""
    tokens: TokenSource | None = None

    @staticmethod
    def of(kafka: Mapping[str, Any]) -> Access:
        source = source_in(kafka)
        user = kafka.get("sasl.username") if source is None else None
        return Access(None if user is None else str(user), source)

    @property
    def user(self) -> str | None:
        """The user, as far as this client has its name; the name in the current token."""
        return self.name if self.tokens is None else self.tokens.principal or None

    def denied(self, kind: Kind, name: str, operation: str) -> str:
        """Return the sentence that names the denied thing and the command that grants access.

        `operation` is the operation as `kafka-acls` spells it; several are separated by commas.
        """
        who = "this client" if self.user is None else f"user {self.user!r}"
        what = "the cluster" if kind == "cluster" else f"{kind} {name!r}"
        where = "--cluster" if kind == "cluster" else f"--{kind} {name}"
        options = " ".join(f"--operation {name.strip()}" for name in operation.split(","))
        return (
            f"{what} must allow {operation} to {who}; grant it with kafka-acls --add "
            f"--allow-principal User:{self.user or 'NAME'} {options} {where}"
        )
