"""Properties of the Kafka clients: their names, and their allowed values.

Names are those that Kafka's own clients use. If librdkafka has another name for a property, that name is
refused with Kafka's name, because the worker's consumer would not accept it. Properties in none of the
lists here are checked by librdkafka.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from streamapp.settings.spellings import near
from topics.tokens.providers import PREFIXES

# Names of librdkafka, and of its older versions -> Kafka's names.
RENAMED: Final = {
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "queue.buffering.max.ms": "linger.ms",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "compression.codec": "compression.type",
    "metadata.broker.list": "bootstrap.servers",
    "request.required.acks": "acks",
    "sasl.mechanisms": "sasl.mechanism",
    "max.in.flight": "max.in.flight.requests.per.connection",
}

# Properties of Kafka's Java clients -> the way to get the same of librdkafka.
ELSEWHERE: Final = {
    "sasl.jaas.config": "set sasl.mechanism, sasl.username and sasl.password instead",
    "ssl.truststore.location": "set ssl.ca.location to a PEM file of the authorities instead",
    "ssl.truststore.password": "set ssl.ca.location to a PEM file of the authorities instead",
    "ssl.truststore.type": "set ssl.ca.location to a PEM file of the authorities instead",
    "max.request.size": "set message.max.bytes instead",
    "buffer.memory": "set queue.buffering.max.kbytes instead",
    "send.buffer.bytes": "set socket.send.buffer.bytes instead",
    "receive.buffer.bytes": "set socket.receive.buffer.bytes instead",
    "default.api.timeout.ms": "set socket.timeout.ms instead",
    "key.serializer": "the formats of records are fixed (docs/records.md); leave it out",
    "value.serializer": "the formats of records are fixed (docs/records.md); leave it out",
    "key.deserializer": "the formats of records are fixed (docs/records.md); leave it out",
    "value.deserializer": "the formats of records are fixed (docs/records.md); leave it out",
    "interceptor.classes": "there are no interceptors; leave it out",
    "sasl.login.callback.handler.class": "set sasl.oauthbearer.method instead",
    "enable.sasl.oauthbearer.unsecure.jwt": "tokens without a signature are not made; leave it out",
}

MILLISECONDS: Final = frozenset(
    {
        "broker.address.ttl",
        "connections.max.idle.ms",
        "coordinator.query.interval.ms",
        "delivery.timeout.ms",
        "fetch.error.backoff.ms",
        "fetch.max.wait.ms",
        "fetch.queue.backoff.ms",
        "heartbeat.interval.ms",
        "linger.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "socket.connection.setup.timeout.ms",
        "socket.timeout.ms",
        "statistics.interval.ms",
        "sticky.partitioning.linger.ms",
        "topic.metadata.propagation.max.ms",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.interval.ms",
    }
)
SIZES: Final = frozenset(
    {
        "batch.num.messages",
        "batch.size",
        "compression.level",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "message.copy.max.bytes",
        "message.max.bytes",
        "queue.buffering.backpressure.threshold",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "receive.message.max.bytes",
        "retries",
        "socket.max.fails",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
    }
)
SWITCHES: Final = frozenset(
    {
        "allow.auto.create.topics",
        "api.version.request",
        "check.crcs",
        "enable.gapless.guarantee",
        "enable.metrics.push",
        "enable.ssl.certificate.verification",
        "log.connection.close",
        "socket.keepalive.enable",
        "socket.nagle.disable",
        "topic.metadata.refresh.sparse",
    }
)
TEXTS: Final = frozenset(
    {
        "auto.offset.reset",
        "broker.address.family",
        "client.dns.lookup",
        "client.rack",
        "compression.type",
        "debug",
        "group.protocol",
        "sasl.kerberos.keytab",
        "sasl.kerberos.principal",
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.location",
        "ssl.keystore.password",
    }
)
KNOWN: Final = MILLISECONDS | SIZES | SWITCHES | TEXTS
OF_TOKENS: Final = PREFIXES
"""Properties that begin so are those of the source of tokens (topics/tokens); no client gets them."""

# Properties of consumers that librdkafka supports (replay, oracle), but not the worker's consumer.
NOT_OF_A_WORKER: Final = frozenset(
    {
        "coordinator.query.interval.ms",
        "fetch.error.backoff.ms",
        "fetch.queue.backoff.ms",
        "heartbeat.interval.ms",
        "queued.max.messages.kbytes",
        "queued.min.messages",
    }
)

_MS_PER = {"ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTES_PER = {"b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


def property_problems(kafka: Mapping[str, object]) -> Iterator[str]:
    """Yield a sentence for each property with a name of another client, or with a value of the wrong kind."""
    for name, value in kafka.items():
        if name in RENAMED:
            yield f"{name} must be called {RENAMED[name]}, as in Kafka's own clients; rename it"
        elif name in ELSEWHERE:
            yield f"{name} is not known to these clients; {ELSEWHERE[name]}"
        elif name in MILLISECONDS | SIZES and not re.fullmatch(r"[+-]?\d+", str(value).strip()):
            unit = " of milliseconds" if name in MILLISECONDS else ""
            remedy = written_as_number(name, value) or "; correct it"
            yield f"{name}={value} must be a whole number{unit}{remedy}"
        elif name in SWITCHES and str(value).lower() not in ("true", "false"):
            yield f"{name}={value} must be true or false; correct it"
        elif name == "group.protocol" and str(value).lower() != "classic":
            yield f"group.protocol={value} must be classic, as which workers join; leave it out"


def written_as_number(name: str, value: object) -> str:
    """Return "; write N" if `value` is a number with a unit that fits the property or setting."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", str(value))
    units = _MS_PER if name.endswith((".ms", ".ttl")) else _BYTES_PER if name.endswith(".bytes") else {}
    if match is None or match[2].lower() not in units:
        return ""
    return f"; write {round(float(match[1]) * units[match[2].lower()])}"


def unknown_property(name: str) -> str:
    """Return the error for a property that librdkafka does not have either."""
    hint = near(name, sorted(KNOWN)) or "; see librdkafka's list of properties"
    return f"{name} is no property of the Kafka clients{hint}"
