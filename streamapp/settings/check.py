"""Checks that ask the users of a setting: the Kafka client for its properties, core for the model spec."""

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


def check_spec(settings: "Settings") -> None:
    """Refuse a model spec that cannot be built."""
    from core.errors import GroveError
    from core.spec import Spec

    try:
        Spec.parse(settings.model_spec)
    except GroveError as error:
        message = f"model.spec: {error}"
        raise SettingsError(message) from None
