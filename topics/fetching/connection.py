"""Connection: aiokafka's arguments to reach and authenticate at the brokers, from librdkafka's properties."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from topics.errors import BrokerError
from topics.tokens.sign_in import source_in

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Mechanisms with a password that aiokafka supports without further packages."""


def is_reachable(kafka: Mapping[str, Any]) -> bool:
    """Whether aiokafka supports the authentication that the properties describe."""
    is_sasl = str(kafka.get("security.protocol", "")).upper().startswith("SASL")
    if not is_sasl or source_in(kafka) is not None:
        return True
    return kafka.get("sasl.mechanism", kafka.get("sasl.mechanisms")) in MECHANISMS


def connection_arguments(kafka: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an `AIOKafkaClient`; raise BrokerError for files that cannot be read."""
    protocol = str(kafka.get("security.protocol", "PLAINTEXT")).upper()
    arguments: dict[str, Any] = {
        "bootstrap_servers": str(kafka["bootstrap.servers"]),
        "security_protocol": protocol,
        "metadata_max_age_ms": int(kafka.get("metadata.max.age.ms", 300_000)),
    }
    if "client.id" in kafka:
        arguments["client_id"] = str(kafka["client.id"])
    if protocol.endswith("SSL"):
        try:
            arguments["ssl_context"] = ssl_context(kafka)
        except (OSError, ssl.SSLError) as error:
            message = (
                f"ssl.ca.location, ssl.certificate.location, ssl.key.location: {error}; correct the paths"
            )
            raise BrokerError(message) from error
    if protocol.startswith("SASL"):
        arguments |= {
            "sasl_mechanism": kafka.get("sasl.mechanism", kafka.get("sasl.mechanisms")),
            "sasl_plain_username": kafka.get("sasl.username"),
            "sasl_plain_password": kafka.get("sasl.password"),
        }
    if (source := source_in(kafka)) is not None:
        from topics.fetching.token_provider import Tokens

        arguments["sasl_oauth_token_provider"] = Tokens(source)
    return arguments


def ssl_context(kafka: Mapping[str, Any]) -> ssl.SSLContext:
    """Return a TLS context from librdkafka's properties: authorities, own certificate and key, host name
    check.

    Raises OSError and ssl.SSLError.
    """
    authorities = kafka.get("ssl.ca.location")
    where = {"capath" if Path(authorities).is_dir() else "cafile": authorities} if authorities else {}
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, **where)
    if "ssl.ca.pem" in kafka:
        context.load_verify_locations(cadata=kafka["ssl.ca.pem"])
    if "ssl.certificate.location" in kafka:
        context.load_cert_chain(
            kafka["ssl.certificate.location"], kafka.get("ssl.key.location"), kafka.get("ssl.key.password")
        )
    if str(kafka.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        context.check_hostname = False
    return context
