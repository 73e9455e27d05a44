"""Client properties from settings: for librdkafka, and as keyword arguments of Faust."""

import ssl
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from streamapp.errors import SettingsError
from streamapp.settings.registry_properties import registry_properties
from streamapp.settings.rules import OFFSET_RESETS
from topics.fetching.connection import ssl_context
from topics.registry.registry_access import registry_access
from topics.tokens.sign_in import signed_in, source_in

if TYPE_CHECKING:
    from streamapp.settings.settings_model import Settings
    from topics.codecs.avro.output_reader import OutputReader
    from topics.registry.client import Registry
    from topics.registry.known_schemas import KnownSchemas

HEARTBEATS_PER_SESSION = 3
REQUEST_S = 90.0  # Faust's default; the session timeout must not be longer

# Client properties for which Faust has a keyword argument; credentials come from `ssl.*` and `sasl.*`.
_FAUST_KEYWORDS: dict[str, tuple[str, type]] = {
    "compression.type": ("producer_compression_type", str),
    "fetch.max.bytes": ("consumer_max_fetch_size", int),
    "check.crcs": ("broker_check_crcs", bool),
    "metadata.max.age.ms": ("consumer_metadata_max_age_ms", int),
}

# Kafka's value "none" means that aiokafka, and so Faust, must get no value at all.
_NOT_SAID = "none"

# Properties whose names differ between librdkafka and Kafka's own clients.
_LIBRDKAFKA_NAMES = {"fetch.max.wait.ms": "fetch.wait.max.ms"}


def librdkafka_properties(settings: "Settings", **overrides: Any) -> dict[str, Any]:
    """Properties for a confluent-kafka client; overrides are Kafka names with underscores.

    With SASL/OAUTHBEARER, the process's source of tokens is one of them.
    """
    properties: dict[str, Any] = {"bootstrap.servers": settings.bootstrap_servers}
    if settings.client_id:
        properties["client.id"] = settings.client_id
    for name, value in settings.kafka.items():
        properties[_LIBRDKAFKA_NAMES.get(name, name)] = (
            value.get_secret_value() if isinstance(value, SecretStr) else value
        )
    return signed_in(properties) | {name.replace("_", "."): value for name, value in overrides.items()}


def registry_of(settings: "Settings") -> "Registry | None":
    """Return a client of the registry in the settings; None without `schema.registry.url`."""
    from topics.registry.client import Registry

    kafka = librdkafka_properties(settings)
    login = (kafka["sasl.username"], kafka.get("sasl.password", "")) if "sasl.username" in kafka else None
    access = registry_access(registry_properties(settings), login, source_in(kafka))
    return None if access is None else Registry(access)


def output_reader(settings: "Settings") -> "OutputReader":
    """Return a reader of outputs, which knows those in Avro if the settings name a registry."""
    from topics.codecs.avro.output_reader import OutputReader

    registry = registry_of(settings)
    return OutputReader(None if registry is None else registry.schema)


def known_schemas(settings: "Settings") -> "KnownSchemas | None":
    """Return the schemas of the registry in the settings; None without `schema.registry.url`."""
    from topics.codecs.by_schema.schema_readers import prepare
    from topics.registry.known_schemas import KnownSchemas

    registry = registry_of(settings)
    return None if registry is None else KnownSchemas(registry, prepare)


def offset_reset(settings: "Settings") -> str:
    """Return where a partition without committed offsets begins: earliest or latest."""
    return OFFSET_RESETS[str(settings.kafka.get("auto.offset.reset", "earliest")).lower()]


def faust_arguments(settings: "Settings", instance: str) -> dict[str, Any]:
    """Keyword arguments of `faust.App` that have to do with the broker (Faust counts in seconds)."""
    session = settings.session_timeout_ms / 1000
    arguments: dict[str, Any] = {
        "id": settings.application_id,
        "broker": [f"kafkabatch://{server.strip()}" for server in settings.bootstrap_servers.split(",")],
        "broker_client_id": settings.client_id or instance,
        "broker_session_timeout": session,
        "broker_request_timeout": max(REQUEST_S, session),
        "broker_heartbeat_interval": min(3.0, session / HEARTBEATS_PER_SESSION),
        "broker_max_poll_interval": settings.max_poll_interval_ms / 1000,
        "consumer_group_instance_id": instance,
        "consumer_auto_offset_reset": offset_reset(settings),
    }
    for name, (keyword, kind) in _FAUST_KEYWORDS.items():
        value = str(settings.kafka.get(name, _NOT_SAID))
        if value != _NOT_SAID:
            arguments[keyword] = value == "true" if kind is bool else kind(value)
    credentials = _credentials(settings)
    return arguments | ({"broker_credentials": credentials} if credentials else {})


def _credentials(settings: "Settings") -> Any:
    import faust

    properties = librdkafka_properties(settings)
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    context = _ssl_context(properties) if protocol.endswith("SSL") else None
    if protocol == "SSL":
        return faust.SSLCredentials(context=context)
    if not protocol.startswith("SASL"):
        return None
    if (source := source_in(properties)) is not None:
        from topics.fetching.token_provider import Tokens

        return faust.OAuthCredentials(oauth_cb=Tokens(source), ssl_context=context)
    return faust.SASLCredentials(
        username=properties["sasl.username"],
        password=properties["sasl.password"],
        mechanism=properties["sasl.mechanism"],
        ssl_context=context,
    )


def _ssl_context(properties: dict[str, Any]) -> ssl.SSLContext:
    try:
        return ssl_context(properties)
    except (OSError, ssl.SSLError) as error:
        message = f"ssl.ca.location, ssl.certificate.location, ssl.key.location: {error}; correct the paths"
        raise SettingsError(message) from error
