"""Settings checks by other packages: librdkafka checks client properties, core the model spec."""

from typing import TYPE_CHECKING

from streamapp.errors import SettingsError

if TYPE_CHECKING:
    from streamapp.settings.settings_model import Settings


def check_clients(settings: "Settings") -> None:
    """Refuse a client property, or its value, if librdkafka or the worker's consumer would refuse it."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from streamapp.settings.clients import librdkafka_properties
    from topics.tokens.sign_in import CALLBACK

    properties = librdkafka_properties(settings)
    properties.pop(CALLBACK, None)  # a check requests no token
    try:
        AdminClient(properties | {"log_level": 0})
    except KafkaException as error:
        message = f"kafka: {error.args[0].str()}; see librdkafka's list of properties"
        raise SettingsError(message) from None


def check_names(settings: "Settings") -> None:
    """Refuse a client property that librdkafka does not have either."""
    from streamapp.settings.properties import KNOWN, OF_TOKENS, unknown_property

    # `rules.py` holds a source of tokens to the properties of its method, which may be a plug-in.
    unsure = [name for name in settings.kafka if name not in KNOWN and not name.startswith(OF_TOKENS)]
    unknown = [unknown_property(name) for name in unsure if not _is_known(name)]
    if unknown:
        raise SettingsError("; ".join(unknown))


def _is_known(name: str) -> bool:
    """Return whether librdkafka has a property: it checks the name before the value."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, name: ""})
    except KafkaException as error:
        return "No such configuration property" not in error.args[0].str()
    except TypeError:
        return True  # a callback: the property exists, and its value is not text
    return True


def check_spec(settings: "Settings") -> None:
    """Refuse a model spec that cannot be built."""
    from core.errors import GroveError
    from core.spec import Spec

    try:
        Spec.parse(settings.model_spec)
    except GroveError as error:
        message = f"model.spec: {error}"
        raise SettingsError(message) from None
