"""Settings sources: environment and TOML file, under Kafka's names."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from streamapp.errors import SettingsError
from streamapp.settings.spellings import (
    CLIENT_SETTINGS,
    FILE_SUFFIX,
    KAFKA_PREFIX,
    OTHER_VARIABLES,
    PREFIX,
    REGISTRY_SETTINGS,
    env_name,
    is_secret,
    kafka_name,
    near,
)

# The file of --config, while settings are being loaded (pydantic creates the sources).
_chosen_file: ContextVar[Path | None] = ContextVar("chosen_file", default=None)


# Variables that Kubernetes sets in every container for a service called `grove-kafka…`.
_SERVICE_LINK = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT$|_PORT_\d+_(TCP|UDP)(_\w+)?$")


@contextmanager
def reading(config: Path | None) -> Iterator[None]:
    """Settings created in this context read this file; None: the file of GROVE_CONFIG, if there is one."""
    token = _chosen_file.set(config)
    try:
        yield
    finally:
        _chosen_file.reset(token)


class _Source(PydanticBaseSettingsSource):
    """A source that returns all its values at once."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        raise NotImplementedError  # __call__ does not read field by field

    def attributes(self) -> set[str]:
        return set(self.settings_cls.model_fields)


class EnvironmentSource(_Source):
    """`GROVE_<SETTING>`, `GROVE_KAFKA_<CLIENT_PROPERTY>`; `…_FILE` names a file that holds the value."""

    def __call__(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        kafka: dict[str, str] = {}
        for variable, text in os.environ.items():
            if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
                continue
            target, read_from_file = self.target(variable)
            if target is None:
                continue  # `unknown_variables` reports it: a platform may set any variable
            value = _read_secret(variable, text) if read_from_file else text
            if target in self.attributes():
                values[target] = value
            else:
                kafka[target] = value
        return values | ({"kafka": kafka} if kafka else {})

    def target(self, variable: str) -> tuple[str | None, bool]:
        """Attribute or property that a variable sets (None: nothing); True if its value names a file."""
        named = {env_name(attribute): attribute for attribute in self.attributes() - {"kafka"}}
        named |= {KAFKA_PREFIX + attribute.upper(): attribute for attribute in REGISTRY_SETTINGS}
        base = variable.removesuffix(FILE_SUFFIX)
        names_file = base != variable
        if variable in named:
            return named[variable], False
        if names_file and base in named:
            return named[base], True
        if not variable.startswith(KAFKA_PREFIX) or base == KAFKA_PREFIX or _SERVICE_LINK.search(variable):
            return None, False
        # Some client properties end in `.file` themselves: only secrets may be read from files.
        if names_file and is_secret(_property(base)):
            return _property(base), True
        return _property(variable), False


class FileSource(_Source):
    """The TOML file of `--config` or `GROVE_CONFIG`; client properties are in its table `[kafka]`."""

    def __call__(self) -> dict[str, Any]:
        file = _config_file()
        if file is None:
            return {}
        values: dict[str, Any] = {}
        kafka: dict[str, str] = {}
        for name, value in _flat(_read_toml(file)).items():
            section, _, rest = name.partition(".")
            attribute = (rest if section == "kafka" else name).replace(".", "_")
            if section == "kafka" and attribute not in (*CLIENT_SETTINGS, *REGISTRY_SETTINGS):
                kafka[rest] = value
            elif attribute in self.attributes() - {"kafka"}:
                values[attribute] = value
            else:
                names = sorted(kafka_name(a) for a in self.attributes() - {"kafka"})
                message = f"{file}: unknown setting {name!r}{near(name, names)}; [kafka] is for the clients"
                raise SettingsError(message)
        return values | ({"kafka": kafka} if kafka else {})


def _config_file() -> Path | None:
    name = os.environ.get("GROVE_CONFIG")
    return _chosen_file.get() or (Path(name) if name else None)


def _property(variable: str) -> str:
    return variable.removeprefix(KAFKA_PREFIX).lower().replace("_", ".")


def _read_secret(variable: str, name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        message = (
            f"{variable}={name} must name a readable file ({reason}); correct the path or mount the secret"
        )
        raise SettingsError(message) from None


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"cannot read the settings file {file} ({error.strerror}); correct --config or GROVE_CONFIG"
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"{file} is not TOML ({error}); correct it"
    raise SettingsError(message)


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted name → value: TOML reads `max.poll.records` as tables; `model.spec` is a table itself."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name.replace("_", ".") != "model.spec":
            flat |= _flat(value, f"{name}.")
        else:
            flat[name] = json.dumps(value) if isinstance(value, dict) else value
    return flat
