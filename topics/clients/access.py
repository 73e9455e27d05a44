"""Access: the error text when a broker denies this client something, with the right to grant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import KafkaError

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

    user: str | None  # None: only the broker can tell (a certificate's user, or anonymous)

    @staticmethod
    def of(kafka: Mapping[str, Any]) -> Access:
        user = kafka.get("sasl.username")
        return Access(None if user is None else str(user))

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
