"""Settings loading from flags, environment, file and defaults; and the environment of a child process."""

import os
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from streamapp.errors import SettingsError
from streamapp.settings.properties import written_as_number
from streamapp.settings.settings_model import Settings
from streamapp.settings.settings_sources import EnvironmentSource, reading
from streamapp.settings.spellings import (
    KAFKA_PREFIX,
    OTHER_VARIABLES,
    PREFIX,
    env_name,
    is_secret,
    kafka_name,
    near,
)


def load_settings(config: Path | None = None, **flags: Any) -> Settings:
    """Settings from flags (None: not given), environment, file, defaults; SettingsError has all mistakes."""
    try:
        with reading(config):
            return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        raise SettingsError("; ".join(_sentence(problem) for problem in error.errors())) from None


def to_environment(settings: Settings) -> dict[str, str]:
    """Variables from which a child process reads the same settings (with secrets: never print them)."""
    variables = {}
    for attribute in type(settings).model_fields:
        value = getattr(settings, attribute)
        if attribute != "kafka" and value is not None:
            text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
            variables[env_name(attribute)] = text.lower() if isinstance(value, bool) else text
    for name, value in settings.kafka.items():
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        variables[KAFKA_PREFIX + name.upper().replace(".", "_")] = text
    return variables


def unknown_variables() -> list[str]:
    """Sentences about variables with our prefix that set nothing, with the setting of the nearest name."""
    source = EnvironmentSource(Settings)
    names = sorted([env_name(a) for a in source.attributes() - {"kafka"}] + list(OTHER_VARIABLES))
    return [
        f"{variable} is not a setting{near(variable, names)}"
        for variable in sorted(os.environ)
        if variable.startswith(PREFIX)
        and variable not in OTHER_VARIABLES
        and source.target(variable)[0] is None
    ]


def _sentence(problem: Any) -> str:
    """A problem of pydantic in our form: `name=value must be rule; remedy`."""
    if not problem["loc"]:
        return str(problem["ctx"]["error"])
    attribute = str(problem["loc"][0])
    name = (
        ".".join(str(part) for part in problem["loc"][1:2]) if attribute == "kafka" else kafka_name(attribute)
    )
    if problem["type"] == "extra_forbidden":
        return f"unknown setting {name!r}; see 'grove config show' for the known settings"
    value = "***" if is_secret(name) else problem["input"]
    number = written_as_number(name, value) if problem["type"] == "int_parsing" else ""
    return f"{name}={value} must be {_rule(problem)}{number}; set {env_name(attribute)}"


def _rule(problem: Any) -> str:
    context = problem.get("ctx", {})
    rules = {
        "greater_than_equal": f"at least {context.get('ge')}",
        "less_than_equal": f"at most {context.get('le')}",
        "literal_error": f"one of {str(context.get('expected', '')).replace(' or ', ', ')}".replace("'", ""),
        "string_too_short": "a text that is not empty",
        "string_pattern_mismatch": f"letters, digits, '.', '_' or '-', matching {context.get('pattern')}",
        "int_parsing": "a whole number",
        "int_from_float": "a whole number",
        "bool_parsing": "true or false",
    }
    fallback: str = problem["msg"][:1].lower() + problem["msg"][1:]
    return rules.get(problem["type"], f"valid ({fallback})")
