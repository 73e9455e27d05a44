"""Settings checks that ask others: the Kafka client about its properties, core about the model spec."""

from typing import TYPE_CHECKING

from streamapp.errors import SettingsError

if TYPE_CHECKING:
    from streamapp.settings.model import Settings


def check_clients(settings: "Settings") -> None:
    """Refuse a client property that librdkafka or the worker's consumer does not know or take."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from streamapp.settings.clients import check_mechanism, librdkafka_properties

    check_mechanism(settings)
    try:
        AdminClient(librdkafka_properties(settings) | {"log_level": 0})
    except KafkaException as error:
        message = f"kafka: {error.args[0].str()}; see librdkafka's list of properties"
        raise SettingsError(message) from None


def check_names(settings: "Settings") -> None:
    """Refuse a client property that nobody knows."""
    from streamapp.settings.properties import KNOWN, unknown_property

    unsure = [name for name in settings.kafka if name not in KNOWN]
    unknown = [unknown_property(name) for name in unsure if not _is_known(name)]
    if unknown:
        raise SettingsError("; ".join(unknown))


def _is_known(name: str) -> bool:
    """Ask librdkafka whether there is a property: it says so before it looks at the value."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, name: ""})
    except KafkaException as error:
        return "No such configuration property" not in error.args[0].str()
    except TypeError:
        return True  # a callback: there is such a property, and its value is not text
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
