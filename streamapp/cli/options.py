"""Options that several commands share, and their conversion to settings."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from streamapp.errors import UsageError

if TYPE_CHECKING:
    from streamapp.settings import Settings
    from topics.definitions import TopicNames

of_settings = partial(typer.Option, rich_help_panel="Settings")

Config = Annotated[
    Path | None, of_settings("--config", "-c", help="TOML file with settings.", metavar="FILE")
]
Servers = Annotated[
    str | None,
    of_settings(
        "--bootstrap-servers", "-b", help="Kafka brokers, host:port[,host:port…].", metavar="SERVERS"
    ),
]
Prefix = Annotated[
    str | None, of_settings("--topics-prefix", help="Prefix of every topic name.", metavar="TEXT")
]
Set = Annotated[
    list[str] | None,
    of_settings(
        "--set",
        "-s",
        help="Any setting, as NAME=VALUE (docs/settings.md); Kafka client properties as kafka.NAME=VALUE.",
        metavar="NAME=VALUE",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
OnePartition = Annotated[
    int, typer.Option("--partition", "-p", help="Number of the partition.", metavar="N", min=0)
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not request a confirmation.")]


class Connection(NamedTuple):
    """The connection of a command to a cluster: settings, librdkafka's properties, names of the topics."""

    settings: "Settings"
    kafka: Mapping[str, Any]
    names: "TopicNames"


@dataclass(frozen=True)
class SettingsOptions:
    """The options from which settings are made."""

    config: Config = None
    servers: Servers = None
    prefix: Prefix = None
    assignments: Set = None

    def settings(self, **flags: Any) -> "Settings":
        """Settings with these options and the flags of a command on top."""
        from streamapp.settings import Settings, load_settings
        from streamapp.settings.check import check_names

        attributes = set(Settings.model_fields) - {"kafka"}
        values: dict[str, Any] = {"bootstrap_servers": self.servers, "topics_prefix": self.prefix, **flags}
        kafka: dict[str, str] = {}
        for assignment in self.assignments or []:
            name, equals, value = assignment.partition("=")
            attribute = name.removeprefix("kafka.").replace(".", "_").replace("-", "_")
            if not equals:
                message = (
                    f"--set {assignment} must look like NAME=VALUE; for example --set max.poll.records=500"
                )
                raise UsageError(message)
            if attribute in attributes:
                values[attribute] = value
            elif name.startswith("kafka."):
                kafka[name.removeprefix("kafka.")] = value
            else:
                raise UsageError(_unknown(name, attributes))
        settings = load_settings(self.config, kafka=kafka or None, **values)
        check_names(settings)
        return settings

    def connection(self, **flags: Any) -> Connection:
        """The same settings, with properties of clients and names of topics."""
        from streamapp.settings.clients import librdkafka_properties
        from topics.definitions import TopicNames

        settings = self.settings(**flags)
        return Connection(settings, librdkafka_properties(settings), TopicNames(settings.topics_prefix))


def _unknown(name: str, attributes: set[str]) -> str:
    names = sorted(attribute.replace("_", ".") for attribute in attributes)
    near = difflib.get_close_matches(name, names, 1, 0.6)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
    return f"--set {name}: no such setting; {hint} (a property of the Kafka clients needs kafka. before it)"
