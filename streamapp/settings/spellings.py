"""A setting's three spellings: `max.poll.records`, `max_poll_records`, `GROVE_KAFKA_MAX_POLL_RECORDS`."""

import difflib
import re
from collections.abc import Iterable

PREFIX = "GROVE_"
KAFKA_PREFIX = "GROVE_KAFKA_"
FILE_SUFFIX = "_FILE"

# Properties of the Kafka clients whose variables have the prefix of pass-through properties.
CLIENT_SETTINGS = (
    "bootstrap_servers",
    "group_instance_id",
    "client_id",
    "max_poll_records",
    "max_poll_interval_ms",
    "session_timeout_ms",
)

# Settings of the schema registry. Serializers of other products have them among the client properties, so
# they are accepted there, too.
REGISTRY_SETTINGS = (
    "schema_registry_url",
    "basic_auth_credentials_source",
    "basic_auth_user_info",
    "bearer_auth_credentials_source",
    "bearer_auth_token",
    "bearer_auth_logical_cluster",
    "bearer_auth_identity_pool_id",
    "schema_registry_ssl_ca_location",
    "schema_registry_ssl_certificate_location",
    "schema_registry_ssl_key_location",
)

# Variables with our prefix that are not settings.
OTHER_VARIABLES = {
    "GROVE_CONFIG": "the settings file (the flag --config)",
    "GROVE_DEBUG": "1 shows the traceback of an error",
    "GROVE_DATASETS": "folder of real data sets (grove experiment)",
}

_SECRET = re.compile(r"password|passphrase|secret|jaas|token$|user\.info$|\.pem$")


def kafka_name(attribute: str) -> str:
    """Kafka's spelling of an attribute."""
    return attribute.replace("_", ".")


def env_name(attribute: str) -> str:
    """Environment variable of an attribute."""
    return (KAFKA_PREFIX if attribute in CLIENT_SETTINGS else PREFIX) + attribute.upper()


def is_secret(property_name: str) -> bool:
    """Whether the value of a Kafka property must never be shown."""
    return _SECRET.search(property_name) is not None


def near(name: str, candidates: Iterable[str]) -> str:
    """Return " (did you mean …?)" with the known name that is most like `name`, or ""."""
    matches = difflib.get_close_matches(name, candidates, 1, 0.6)
    return f" (did you mean {matches[0]!r}?)" if matches else ""
