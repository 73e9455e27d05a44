"""Access: what a broker denies this client, with the right to grant."""

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
    """Return what kind of thing an error code denies; None: it is about something else."""
    return _KINDS.get(code)


@dataclass(frozen=True, slots=True)
class Access:
    """Who this client is to the broker."""

    user: str | None  # None: known to the broker alone (by its certificate, or anonymous)

    @staticmethod
    def of(kafka: Mapping[str, Any]) -> Access:
        user = kafka.get("sasl.username")
        return Access(None if user is None else str(user))

    def denied(self, kind: Kind, name: str, operation: str) -> str:
        """Return the sentence that names what was denied and the command that grants it.

        operation: as `kafka-acls` calls it, several with commas between them.
        """
        who = "this client" if self.user is None else f"user {self.user!r}"
        what = "the cluster" if kind == "cluster" else f"{kind} {name!r}"
        where = "--cluster" if kind == "cluster" else f"--{kind} {name}"
        wanted = " ".join(f"--operation {each.strip()}" for each in operation.split(","))
        return (
            f"{what} must allow {operation} to {who}; grant it with kafka-acls --add "
            f"--allow-principal User:{self.user or 'NAME'} {wanted} {where}"
        )
