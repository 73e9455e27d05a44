"""Settings: one frozen class, Kafka's property names; flag > environment > file > default."""

from streamapp.settings.loading import load_settings, to_environment
from streamapp.settings.settings_model import Settings
from streamapp.settings.spellings import env_name, is_secret, kafka_name

__all__ = ["Settings", "env_name", "is_secret", "kafka_name", "load_settings", "to_environment"]
