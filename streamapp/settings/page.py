"""`docs/settings.md`, made from the settings class; `grove config show --page` writes it."""

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from streamapp.settings.rules import OWNED
from streamapp.settings.settings_model import Settings
from streamapp.settings.sign_in_page import sign_in_section
from streamapp.settings.spellings import OTHER_VARIABLES, env_name, kafka_name
from streamapp.settings.tables import code, table

INTRODUCTION = """# Settings

*Made by `grove config show --page > docs/settings.md`; a test compares it with the code.*

Every setting has Kafka's name if Kafka has one. Its value is taken from the first of these places that has
it: command line flag (`--set NAME=VALUE` for every setting), environment variable, settings file
(`--config FILE` or `GROVE_CONFIG`), default. Times are in milliseconds, sizes in bytes. Appending `_FILE`
to a variable makes it the name of a file that holds the value:
`GROVE_KAFKA_SASL_PASSWORD_FILE=/run/secrets/password`.

```toml
application.id = "fraud"
topics.prefix = "fraud."

[model.spec]
learner = {name = "h-tree"}
query = {name = "variable_uncertainty"}
budget = {name = "count", limit = 0.1}

[kafka]
bootstrap.servers = "kafka-1:9092,kafka-2:9092"
security.protocol = "SASL_SSL"
sasl.mechanism = "SCRAM-SHA-512"
sasl.username = "grove"
```

`grove config show` prints the values in force, secrets masked; `grove config check` prints the errors and
exits with 78.
"""

CLIENTS = """## Other Kafka properties

`GROVE_KAFKA_<PROPERTY>` (dots to underscores: `GROVE_KAFKA_SECURITY_PROTOCOL`), an entry of `[kafka]` or
`--set kafka.<property>=VALUE` is passed on to the Kafka clients. The worker's consumer takes
`security.protocol`, `sasl.mechanism`, `sasl.username`, `sasl.password`, `ssl.ca.location`, `ssl.ca.pem`,
`ssl.certificate.location`, `ssl.key.location`, `ssl.key.password`, `ssl.endpoint.identification.algorithm`,
`auto.offset.reset`, `compression.type`, `fetch.max.bytes`, `fetch.max.wait.ms`, `fetch.min.bytes`,
`max.partition.fetch.bytes`, `metadata.max.age.ms`, `client.rack` (it fetches from the nearest replica) and
`check.crcs`; its producers take the same properties of connections, and `batch.size`,
`compression.type`, `compression.level`, `queue.buffering.max.kbytes`, `queue.buffering.max.messages`,
`socket.timeout.ms` and `receive.message.max.bytes`; at least once also `delivery.timeout.ms`, `linger.ms`,
`message.max.bytes`, `request.timeout.ms`, `retry.backoff.ms`, `retry.backoff.max.ms`,
`topic.metadata.propagation.max.ms` and `acks`, which must be `all`. All other producers, replay, oracle and
administration take every property of librdkafka. An unknown
name ends any command with 78, and so does librdkafka's own name of a property that has another name in
Kafka (`fetch.wait.max.ms` must be `fetch.max.wait.ms`). A worker warns of properties that its consumer does
not have. Variables that Kubernetes sets for a service called `grove-kafka` (`GROVE_KAFKA_SERVICE_HOST`, …)
are no properties.

These must not be set:
"""


def page() -> str:
    """The whole page, with a final line end."""
    parts = [INTRODUCTION]
    sections: dict[str, list[tuple[str, ...]]] = {}
    for attribute, field in Settings.model_fields.items():
        if attribute in Settings.sections:
            rows = sections.setdefault(Settings.sections[attribute], [])
        if attribute != "kafka":
            names = f"`{kafka_name(attribute)}`", f"`{env_name(attribute)}`"
            rows.append((*names, _values(attribute), _default(attribute, field), field.description or ""))
    head = "setting", "variable", "values", "default", "meaning"
    parts += [f"\n## {title}\n\n{table(head, rows)}" for title, rows in sections.items()]
    owned = table(("property", "why"), ((f"`{name}`", remedy) for name, remedy in OWNED.items()))
    others = table(
        ("variable", "meaning"), ((f"`{name}`", meaning) for name, meaning in OTHER_VARIABLES.items())
    )
    pages = [*parts, "\n", CLIENTS, "\n", owned, sign_in_section()]
    return "".join([*pages, "\n## Other variables\n\n", others])


def _values(attribute: str) -> str:
    """Allowed values of a setting in words, from its JSON schema."""
    schema = Settings.model_json_schema()["properties"][attribute]
    options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"]
    option = options[0]
    if "const" in option:
        return f"`{option['const']}`"
    if "enum" in option:
        return ", ".join(map(code, option["enum"]))
    if option.get("type") == "integer":
        low, high = option.get("minimum"), option.get("maximum")
        return f"{low:,} to {high:,}" if high is not None else f"≥ {low:,}"
    return {"boolean": "`true`, `false`"}.get(option.get("type"), "path" if "format" in option else "text")


def _default(attribute: str, field: FieldInfo) -> str:
    if attribute == "state_dir":
        return "`$XDG_STATE_HOME/streamgrove` or `~/.local/state/streamgrove`"
    assert field.default is not PydanticUndefined, attribute
    if field.default is None:
        return "–"
    return code(field.default)
