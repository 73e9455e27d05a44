"""Rules over several settings, or of this release: each a sentence `name=value must …; what to do`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from pydantic import SecretStr

from streamapp.settings.properties import property_problems
from streamapp.settings.registry_properties import RegistryValues, registry_properties
from topics.registry.registry_access import BASIC_SOURCE, BEARER_SOURCE, access_problems
from topics.tokens.sign_in import sign_in_problems

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
GSSAPI = (
    "sasl.mechanism=GSSAPI is not supported by librdkafka as the packages of confluent-kafka bring it (built "
    "without Kerberos), nor by aiokafka without the package gssapi; set sasl.mechanism to one of "
    f"{', '.join(MECHANISMS)}"
)

# librdkafka's names for the start without a committed offset; the worker and Faust accept the first two.
OFFSET_RESETS = {
    "earliest": "earliest",
    "latest": "latest",
    "beginning": "earliest",
    "smallest": "earliest",
    "end": "latest",
    "largest": "latest",
}

# The delivery guarantee depends on these: another value would break it silently.
OWNED = {
    "group.id": "set application.id instead",
    "enable.auto.commit": "offsets are committed after the outputs; leave it out",
    "enable.auto.offset.store": "offsets are committed after the outputs; leave it out",
    "enable.idempotence": "the producer is always idempotent; leave it out",
    "acks": "acknowledgement by all replicas is always requested; leave it out",
    "transactional.id": "it is made of application.id and group.instance.id; leave it out",
    "isolation.level": "it is always read_committed; leave it out",
    "transaction.timeout.ms": "the product has a setting for it; use GROVE_TRANSACTION_TIMEOUT_MS",
    "partitioner": "an answer goes to the partition of its question; leave it out",
    "partition.assignment.strategy": "tables and topics must move together; leave it out",
}


class Values(RegistryValues, Protocol):
    """The settings that the rules read."""

    @property
    def bootstrap_servers(self) -> str: ...
    @property
    def topics_prefix(self) -> str: ...
    @property
    def max_poll_interval_ms(self) -> int: ...
    @property
    def session_timeout_ms(self) -> int: ...
    @property
    def commit_interval_ms(self) -> int: ...
    @property
    def processing_guarantee(self) -> str: ...
    @property
    def transaction_timeout_ms(self) -> int: ...
    @property
    def group_instance_id(self) -> str | None: ...
    @property
    def input_skew_ms(self) -> int: ...
    @property
    def pending_ttl_ms(self) -> int: ...
    @property
    def pending_keep(self) -> str: ...
    @property
    def pending_max_bytes(self) -> int: ...
    @property
    def record_max_bytes(self) -> int: ...
    @property
    def fetch_decompressed_max_bytes(self) -> int: ...
    @property
    def output_format(self) -> str | None: ...
    @property
    def schema_registry_url(self) -> str | None: ...
    @property
    def kafka(self) -> Mapping[str, str | SecretStr]: ...


def problems(settings: Values) -> list[str]:
    """All broken rules as sentences; empty if there are none."""
    return [
        sentence
        for rule in (_servers, _prefix, _names, _times, _sizes, _kafka, _registry)
        for sentence in rule(settings)
    ]


def _servers(settings: Values) -> list[str]:
    bad = [server for server in settings.bootstrap_servers.split(",") if not _is_address(server.strip())]
    if not bad:
        return []
    return [f"bootstrap.servers={bad[0]!r} must be host:port, port 1 to 65535; write it like kafka-1:9092"]


def _is_address(server: str) -> bool:
    match = re.fullmatch(
        r"(?:[A-Za-z][A-Za-z0-9_+]*://)?(?:[^\s:/\[\]]+|\[[0-9A-Fa-f:]+\]):(\d{1,5})", server
    )
    return match is not None and 1 <= int(match[1]) <= 65_535


def _prefix(settings: Values) -> list[str]:
    if re.fullmatch(r"[A-Za-z0-9._-]{0,200}", settings.topics_prefix):
        return []
    return [
        f"topics.prefix={settings.topics_prefix!r} must consist of at most 200 letters, digits, '.', '_' "
        "and '-'; rename it"
    ]


def _names(settings: Values) -> list[str]:
    # It is the name of a directory (streamapp/worker/state_directory.py).
    if settings.group_instance_id not in (".", ".."):
        return []
    return [
        f"group.instance.id={settings.group_instance_id} must be another name: '.' and '..' are "
        "directories of the file system; choose a name without them"
    ]


def _times(settings: Values) -> list[str]:
    sentences = []
    if settings.max_poll_interval_ms < settings.session_timeout_ms:
        sentences.append(
            f"max.poll.interval.ms={settings.max_poll_interval_ms} must be at least "
            f"session.timeout.ms={settings.session_timeout_ms}; raise the first or lower the second"
        )
    if settings.commit_interval_ms >= settings.max_poll_interval_ms:
        sentences.append(
            f"commit.interval.ms={settings.commit_interval_ms} must be less than "
            f"max.poll.interval.ms={settings.max_poll_interval_ms}; lower it"
        )
    if (
        settings.processing_guarantee == "exactly_once"
        and settings.commit_interval_ms >= settings.transaction_timeout_ms
    ):
        sentences.append(
            f"commit.interval.ms={settings.commit_interval_ms} must be less than "
            f"transaction.timeout.ms={settings.transaction_timeout_ms} with processing.guarantee="
            "exactly_once: the broker would end every transaction before it is committed; lower the first or "
            "raise the second"
        )
    if settings.pending_ttl_ms <= settings.input_skew_ms:
        sentences.append(
            f"pending.ttl.ms={settings.pending_ttl_ms} must be more than "
            f"input.skew.ms={settings.input_skew_ms}, or instances expire before their labels come; raise it"
        )
    return sentences


def _sizes(settings: Values) -> list[str]:
    sentences = []
    if settings.fetch_decompressed_max_bytes < settings.record_max_bytes:
        sentences.append(
            f"fetch.decompressed.max.bytes={settings.fetch_decompressed_max_bytes} must be at least "
            f"record.max.bytes={settings.record_max_bytes}, or a batch of one such record is refused; raise "
            "the first or lower the second"
        )
    if settings.pending_max_bytes >= settings.record_max_bytes or settings.pending_keep == "requested":
        return sentences
    return [
        *sentences,
        f"pending.max.bytes={settings.pending_max_bytes} must be at least record.max.bytes="
        f"{settings.record_max_bytes} with pending.keep=all; raise it or keep only requested instances",
    ]


def _kafka(settings: Values) -> list[str]:
    properties = {name: value for name, value in settings.kafka.items() if isinstance(value, str)}
    sentences = list(property_problems(properties))
    sentences += [
        f"{name} must not be set: {remedy}" for name, remedy in OWNED.items() if name in settings.kafka
    ]
    reset = properties.get("auto.offset.reset", "earliest")
    if reset.lower() not in OFFSET_RESETS:
        sentences.append(
            f"auto.offset.reset={reset} must be earliest or latest (or a synonym: "
            f"{', '.join(list(OFFSET_RESETS)[2:])}): a worker without committed offsets begins somewhere; "
            "set one of them"
        )
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        sentences.append(f"security.protocol={protocol} must be one of {', '.join(PROTOCOLS)}; correct it")
    if protocol.startswith("SASL"):
        mechanism = properties.get("sasl.mechanism", "")
        if mechanism == "GSSAPI":
            sentences.append(GSSAPI)
        elif mechanism not in MECHANISMS:
            sentences.append(
                f"sasl.mechanism={mechanism or '(none)'} must be one of {', '.join(MECHANISMS)} with "
                f"security.protocol={protocol}; set GROVE_KAFKA_SASL_MECHANISM"
            )
        elif mechanism == "OAUTHBEARER":
            sentences += sign_in_problems(
                {
                    name: value.get_secret_value() if isinstance(value, SecretStr) else value
                    for name, value in settings.kafka.items()
                }
            )
        else:
            sentences += [
                f"{name} must be set with sasl.mechanism={mechanism}; "
                f"set GROVE_KAFKA_{name.replace('.', '_').upper()}"
                + ("_FILE to a file that holds it" if name == "sasl.password" else "")
                for name in ("sasl.username", "sasl.password")
                if name not in settings.kafka
            ]
    return sentences


def _registry(settings: Values) -> list[str]:
    properties = registry_properties(settings)
    sentences = list(access_problems(properties))
    if settings.output_format == "avro" and not settings.schema_registry_url:
        sentences.append(
            "output.format=avro needs schema.registry.url, where its schemas are registered; set it, or json"
        )
    protocol = str(settings.kafka.get("security.protocol", "PLAINTEXT")).upper()
    mechanism = settings.kafka.get("sasl.mechanism") if protocol.startswith("SASL") else None
    if properties.get(BASIC_SOURCE) == "SASL_INHERIT" and "sasl.username" not in settings.kafka:
        sentences.append(
            f"{BASIC_SOURCE}=SASL_INHERIT needs sasl.username and sasl.password; set them, or USER_INFO"
        )
    if properties.get(BEARER_SOURCE) == "SASL_OAUTHBEARER_INHERIT" and mechanism != "OAUTHBEARER":
        sentences.append(
            f"{BEARER_SOURCE}=SASL_OAUTHBEARER_INHERIT needs sasl.mechanism=OAUTHBEARER; set it, or "
            "STATIC_TOKEN"
        )
    return sentences
