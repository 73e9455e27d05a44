"""Settings: one frozen class, Kafka's property names; flag > environment > file > default."""

from streamapp.settings.model import Settings
from streamapp.settings.names import env_name, is_secret, kafka_name
from streamapp.settings.sources import load_settings, to_environment

__all__ = ["Settings", "env_name", "is_secret", "kafka_name", "load_settings", "to_environment"]
